-- Claims an idempotency key, or renews the claim of its holder. A claim that lasts longer already is not shortened.
-- KEYS claim
-- ARGV id, time in ms
local holder = redis.call('HGET', KEYS[1], 'id')
if holder and holder ~= ARGV[1] then
  return {'taken', holder, redis.call('HGET', KEYS[1], 'body')}
end
if not holder then
  redis.call('HSET', KEYS[1], 'id', ARGV[1])
end
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return {'ok'}
