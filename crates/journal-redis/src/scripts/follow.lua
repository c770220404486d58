-- Registers a replica that follows a log, or keeps it registered, and says who is the writer.
-- KEYS log, meta, readers
-- ARGV replica, time in ms
local meta = redis.call('HMGET', KEYS[2], 'owner', 'ended')
if not meta[1] or redis.call('EXISTS', KEYS[1]) == 0 then
  return {'vanished'}
end
if meta[2] then
  return {'ended'}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- A server that takes no writes at the moment, because its memory or its disk is full, can be followed all the same:
-- what is kept here is for a writer that has not heard of it.
redis.pcall('ZADD', KEYS[3], now + ARGV[2], ARGV[1])
redis.pcall('PEXPIRE', KEYS[3], ARGV[2])
return {'ok', meta[1]}
