-- Keeps the request of a generation that has no end.
-- KEYS gone, request
-- ARGV request, expiry in ms
if redis.call('EXISTS', KEYS[1]) == 1 then
  return {'ended'}
end
redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2])
return {'ok'}
