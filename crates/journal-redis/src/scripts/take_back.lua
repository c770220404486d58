-- Takes back the last record, which has no place behind the one before it. Its id has to be free again, and Redis may
-- refuse ids that were deleted, so the log is made anew without it.
-- KEYS log
-- ARGV id of the record, and the record: its writer may have taken it back, and put another there
local ends = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 2)
if not ends[2] or ends[1][1] ~= ARGV[1] or ends[1][2][2] ~= ARGV[2] then
  return {'other'}
end
local left = redis.call('PTTL', KEYS[1])
local stay = redis.call('XRANGE', KEYS[1], '-', ends[2][1])
redis.call('DEL', KEYS[1])
for _, record in ipairs(stay) do
  redis.call('XADD', KEYS[1], record[1], unpack(record[2]))
end
if left >= 0 then
  redis.call('PEXPIRE', KEYS[1], math.max(left, 1))
end
return {'ok'}
