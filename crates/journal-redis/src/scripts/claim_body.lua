-- Adds the digest of the body to a claim that ARGV[1] holds.
-- KEYS claim
-- ARGV id, digest
if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return {'lost'}
end
redis.call('HSET', KEYS[1], 'body', ARGV[2])
return {'ok'}
