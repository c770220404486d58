-- Who gives signs of life now.
-- KEYS replicas
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
return {'ok', unpack(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf'))}
