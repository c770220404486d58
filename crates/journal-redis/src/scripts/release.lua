-- Frees a key, if ARGV[1] holds it.
-- KEYS claim
-- ARGV id
if redis.call('HGET', KEYS[1], 'id') == ARGV[1] then
  redis.call('DEL', KEYS[1])
end
return {'ok'}
