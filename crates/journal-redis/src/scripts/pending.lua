-- What waits for the writer of a log: a stop, and the replicas that follow it.
-- KEYS meta, readers
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local readers = redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf')
return {'ok', redis.call('HGET', KEYS[1], 'stop'), table.concat(readers, ' ')}
