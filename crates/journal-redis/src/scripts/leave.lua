-- A replica follows a log no more. Says who is the writer.
-- KEYS meta, readers
-- ARGV replica
redis.call('ZREM', KEYS[2], ARGV[1])
return {'ok', redis.call('HGET', KEYS[1], 'owner')}
