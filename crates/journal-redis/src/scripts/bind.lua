-- Binds a claim to the life of its log.
-- KEYS claim
-- ARGV id, time in ms
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return {'lost'}
end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return {'ok'}
