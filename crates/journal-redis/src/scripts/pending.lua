-- What waits for the writer of a log: a stop, the replicas that follow it, and whether it is the writer still.
-- KEYS meta, readers
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local readers = redis.call('ZRANGEBYSCORE', KEYS[2], now, '+inf')
local meta = redis.call('HMGET', KEYS[1], 'stop', 'owner', 'epoch')
return {'ok', meta[1], table.concat(readers, ' '), meta[2], meta[3]}
