-- Changes the writer: a record without entries under the new epoch, which every older one is smaller than. It is
-- published when others follow, so that they catch up. Says who was the writer before. One that stands already is not
-- written again. Epochs and sequences are compared as text: a number of Lua does not hold every one.
-- KEYS log, meta, readers, request
-- ARGV epoch that is replaced, expected sequence, new epoch, record, expiry in ms, owner, feed channel, how to publish
-- there
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if not last then
  redis.call('DEL', KEYS[4])
  return {'vanished'}
end
local id = last[1]
if id == '18446744073709551615-18446744073709551615' then
  return {'ended'}
end
local epoch, seq = string.match(id, '^(%d+)-(%d+)$')
local stands = epoch == ARGV[3]
if epoch ~= ARGV[1] and not stands then
  return {'fenced', epoch}
end
if seq ~= ARGV[2] then
  return {'unexpected', seq}
end
if not stands then
  redis.call('XADD', KEYS[1], ARGV[3] .. '-' .. seq, 'r', ARGV[4])
end
redis.call('PEXPIRE', KEYS[1], ARGV[5])
redis.call('PEXPIRE', KEYS[4], ARGV[5])
local meta = redis.call('HMGET', KEYS[2], 'access', 'claims', 'label', 'owner')
if meta[1] then
  redis.call('HSET', KEYS[2], 'epoch', ARGV[3], 'owner', ARGV[6])
  redis.call('PEXPIRE', KEYS[2], ARGV[5])
end
-- It is done, whoever hears of it.
if redis.call('EXISTS', KEYS[3]) == 1 then
  redis.pcall(ARGV[8], ARGV[7], ARGV[4])
end
return {'ok', meta[1], meta[2], meta[3], meta[4]}
