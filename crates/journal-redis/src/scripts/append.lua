-- An append that others follow: what Redis has taken, and only that, is published at once.
-- KEYS log
-- ARGV entry id, record, feed channel
local id = redis.call('XADD', KEYS[1], 'NOMKSTREAM', ARGV[1], 'r', ARGV[2])
if id then
  redis.call('PUBLISH', ARGV[3], ARGV[2])
end
return id
