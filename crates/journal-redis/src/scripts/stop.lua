-- Asks the writer of a log to end it, and says who that is: written before it is told, so that one that is not
-- listening finds it later.
-- KEYS log, meta
-- ARGV 1 when an operator asks or 0
local meta = redis.call('HMGET', KEYS[2], 'owner', 'ended')
if not meta[1] or meta[2] or redis.call('EXISTS', KEYS[1]) == 0 then
  return {'none'}
end
redis.call('HSET', KEYS[2], 'stop', ARGV[1])
return {'ok', meta[1]}
