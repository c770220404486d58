-- A write that changes nothing: WAIT counts from the last write of its connection, so whoever sends this before it
-- waits for everything that stood here, whoever wrote it.
-- KEYS log
-- ARGV expiry in ms, for one that has lost its own
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  return {'vanished'}
end
if left < 1 then
  left = ARGV[1]
end
redis.call('PEXPIRE', KEYS[1], left)
return {'ok'}
