-- A replica follows a log no more.
-- KEYS meta, readers
-- ARGV replica, id of the generation, prefix of the channels for orders
redis.call('ZREM', KEYS[2], ARGV[1])
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner then
  redis.call('PUBLISH', ARGV[3] .. owner, 'readers ' .. ARGV[2] .. ' ' .. ARGV[1] .. ' 0')
end
return {'ok'}
