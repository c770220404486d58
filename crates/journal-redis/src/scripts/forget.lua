-- Takes generations off the list of a replica that gives no sign of life, and the replica itself when none is left.
-- KEYS replicas, owned
-- ARGV replica, then ids
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local till = redis.call('ZSCORE', KEYS[1], ARGV[1])
if till and tonumber(till) > now then
  return {'alive'}
end
if #ARGV > 1 then
  redis.call('SREM', KEYS[2], unpack(ARGV, 2))
end
if redis.call('EXISTS', KEYS[2]) == 1 then
  return {'some'}
end
redis.call('ZREM', KEYS[1], ARGV[1])
return {'none'}
