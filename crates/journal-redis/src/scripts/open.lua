-- Creates a log. Refused when there is one of this id, or its tombstone.
-- KEYS log, meta, gone
-- ARGV entry id, record, what is beside it or nothing, expiry in ms, then field and value pairs of the meta hash
if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[3]) > 0 then
  return {'exists'}
end
local fields = {'r', ARGV[2]}
if ARGV[3] ~= '' then
  fields[3], fields[4] = 't', ARGV[3]
end
redis.call('XADD', KEYS[1], ARGV[1], unpack(fields))
redis.call('HSET', KEYS[2], unpack(ARGV, 5))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {'ok'}
