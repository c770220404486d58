-- Creates a log. Refused when there is one of this id, or its tombstone.
-- KEYS log, meta, gone
-- ARGV entry id, record, expiry in ms, then field and value pairs of the meta hash
if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) > 0 then
  return {'exists'}
end
redis.call('XADD', KEYS[1], ARGV[1], 'r', ARGV[2])
redis.call('HSET', KEYS[2], unpack(ARGV, 4))
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
return {'ok'}
