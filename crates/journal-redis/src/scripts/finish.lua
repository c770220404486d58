-- Ends a log: one record under the greatest id there can be, after which Redis itself refuses every other.
-- It is published when others follow, unless the channel is empty: then the caller does it. The request goes with the
-- end, as it does with a log that is not there.
-- KEYS log, meta, gone, readers, request
-- ARGV expected sequence, epoch, record, retention in ms, tombstone in ms, label, feed channel, how to publish there,
-- what is beside the record or nothing
local last, before = unpack(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 2))
if not last then
  redis.call('DEL', KEYS[5])
  return {'vanished'}
end
local id = last[1]
if id == '18446744073709551615-18446744073709551615' then
  return {'ended'}
end
local epoch, seq = string.match(id, '^(%d+)-(%d+)$')
-- Both as text: a number of Lua does not hold every epoch. A higher epoch was adopted in what is lost since.
if epoch ~= ARGV[2] then
  return {'fenced', epoch}
end
if seq ~= ARGV[1] then
  return {'unexpected', seq}
end
-- The last record may have been taken while what it was to follow was lost. Then it leaves a gap, or stands behind another
-- epoch and is no mark, which has the sequence of what it stands behind. Nothing ends behind what has no place.
if before then
  local epoch_before, seq_before = string.match(before[1], '^(%d+)-(%d+)$')
  local stored = last[2][2]
  local first, from = 0, stored:byte(1) == 1 and 6 or 10
  for at = from, from + 7 do
    first = first * 256 + stored:byte(at)
  end
  if first > tonumber(seq_before) + 1 or (epoch_before ~= epoch and seq_before ~= seq) then
    return {'stray'}
  end
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
