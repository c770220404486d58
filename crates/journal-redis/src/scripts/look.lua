-- Keeps a replica alive, and tells who has given no sign of life for as long as it said one would last.
-- KEYS replicas, owned
-- ARGV replica, how long this sign lasts in ms, expiry of both keys in ms
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local till = redis.call('ZSCORE', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)
-- Whoever was silent may have been taken for dead, and its list may have been changed.
return {till and tonumber(till) > now and 'kept' or 'lapsed', unpack(silent)}
