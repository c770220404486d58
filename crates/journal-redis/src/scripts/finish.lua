-- Ends a log: one record under the greatest id there can be, after which Redis itself refuses every other.
-- It is published when others follow, unless the channel is empty: then the caller does it. The request goes with the
-- end, as it does with a log that is not there.
-- KEYS log, meta, gone, readers, request
-- ARGV expected sequence, epoch, record, retention in ms, tombstone in ms, label, feed channel, how to publish there,
-- what is beside the record or nothing
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not last then
  redis.call('DEL', KEYS[5])
  return {'vanished'}
end
local id = last[1]
if id == '18446744073709551615-18446744073709551615' then
  return {'ended'}
end
local epoch, seq = string.match(id, '^(%d+)-(%d+)$')
-- A higher one was adopted in what is lost since.
if tonumber(ARGV[2]) ~= tonumber(epoch) then
  return {'fenced', epoch}
end
-- As text: a number of Lua does not hold every sequence.
if seq ~= ARGV[1] then
  return {'unexpected', seq}
end
local fields = {'r', ARGV[3]}
if ARGV[9] ~= '' then
  fields[3], fields[4] = 't', ARGV[9]
end
redis.call('XADD', KEYS[1], '18446744073709551615-18446744073709551615', unpack(fields))
redis.call('DEL', KEYS[5])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
local access = redis.call('HGET', KEYS[2], 'access')
if access then
  redis.call('HSET', KEYS[2], 'ended', '1', 'label', ARGV[6])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
  redis.call('SET', KEYS[3], access, 'PX', ARGV[5])
end
if ARGV[7] ~= '' and redis.call('EXISTS', KEYS[4]) == 1 then
  redis.call(ARGV[8], ARGV[7], ARGV[3])
end
return {'ok'}
