#!/usr/bin/env bash
# `streamweld demo` with two replicas over one journal in Redis, which is killed in mid-answer. Everything lies in a
# temporary folder and is gone at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
streamweld=${STREAMWELD:-target/release/streamweld}
demo=demo-redis
source scripts/processes.sh

# Ours, and not somebody else's that had the port already.
redis_answers() {
  local info
  info=$(redis-cli -p "$port" info server 2>/dev/null) && [[ $info == *"process_id:${pids[redis]}"[^0-9]* ]]
}

start_redis() {
  start redis redis-server --bind 127.0.0.1 --port "$port" --dir "$folder" --save "" \
    --appendonly yes --maxmemory-policy noeviction
  wait_for redis redis_answers
}

start_replica() { # NAME
  start "$1" "$streamweld" serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 \
    --backend "http://$backend" --journal "redis://127.0.0.1:$port"
  wait_for "$1" url_in_log "$1" "data listener on" || fail "$1" "the $1 replica did not start"
}

# The client says in lines with an arrow what is to be done.
act() { # LINE
  case $1 in
    *"→ kill Redis now"*) end redis KILL || true ;;
    *"→ start Redis again now"*) start_redis || fail redis "Redis did not start again" ;;
    *"→ end the first replica now"*) end first TERM || fail first "the first replica did not end in order" ;;
  esac
}

if ! command -v redis-server >/dev/null; then scripts/setup-test.sh redis; fi
# Redis does not choose a free port by itself. These are below those that outgoing connections take.
for _ in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 10000))
  if start_redis; then break; fi
done
redis_answers || fail redis "Redis did not start"
# A backend that is slow enough for all of it to happen within one answer.
start mock "$streamweld" mock --listen 127.0.0.1:0 --set tokens=300 --set pace=40ms
wait_for mock url_in_log mock "mock listening on" || fail mock "the mock did not start"
backend=$url
start_replica first
first=$url
start_replica second
second=$url

echo "redis       127.0.0.1:$port, with an append-only file"
echo "backend     a fake inference server"
exec 3< <(exec "$streamweld" demo --replicas "$first,$second")
pids[demo]=$!
while IFS= read -r line <&3; do
  echo "$line"
  act "$line"
done
demo=${pids[demo]}
unset "pids[demo]"
wait "$demo"
