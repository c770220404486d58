#!/usr/bin/env bash
# Three replicas, each with a fake inference server of its own, over one Redis; one answer, and a kill -9 of the replica
# that runs it together with its engine. A reader that comes back anywhere has the rest. Everything lies in a temporary
# folder and is gone at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
streamweld=${STREAMWELD:-target/release/streamweld}
answer="The tide comes in twice a day, because the Moon pulls at the sea on the near side more than at the Earth below it, \
and at the Earth more than at the sea on the far side. Two bulges of water stand there, and the Earth turns under both of them."
lease=2s
demo=demo-takeover
source scripts/processes.sh

# Ours, and not somebody else's that had the port already.
redis_answers() {
  local info
  info=$(redis-cli -p "$port" info server 2>/dev/null) && [[ $info == *"process_id:${pids[redis]}"[^0-9]* ]]
}

start_redis() {
  start redis redis-server --bind 127.0.0.1 --port "$port" --dir "$folder" --save "" --maxmemory-policy noeviction
  wait_for redis redis_answers
}

start_pair() { # NAME: an engine and the replica in front of it
  start "engine-$1" "$streamweld" mock --listen 127.0.0.1:0 --set engine=vllm --set pace=60ms --set "text=\"$answer\""
  wait_for "engine-$1" url_in_log "engine-$1" "mock listening on" || fail "engine-$1" "the engine of $1 did not start"
  start "$1" "$streamweld" serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 \
    --backend "http://$url,name=$1,engine=vllm,group=demo" --vouched demo \
    --journal "redis://127.0.0.1:$port" --presence-lease "$lease"
  wait_for "$1" url_in_log "$1" "data listener on" || fail "$1" "the replica $1 did not start"
}

# Prints the words of what it reads, until it ends or `words` are there. Sets `said`, `last`, `moved` and `whole`.
read_answer() { # WORDS
  local words=$1 count=0
  while IFS= read -r line <&3; do
    if [[ $line =~ \"from\":\"([^\"]*)\",\"to\":\"([^\"]*)\".*\"trigger\":\"([^\"]*)\" ]]; then
      moved=${BASH_REMATCH[2]}
      printf '\n            → %s goes on (%s)\n            ' "$moved" "${BASH_REMATCH[3]}"
    elif [[ $line =~ \"content\":\"([^\"]+)\" ]]; then
      said+=${BASH_REMATCH[1]}
      printf '%s' "${BASH_REMATCH[1]}"
      count=$((count + 1))
    elif [[ $line == "data: [DONE]"* ]]; then
      whole=yes
    elif [[ $line == "id: "* ]]; then
      last=${line#id: }
      if ((count >= words)); then return; fi
    fi
  done
}

if ! command -v redis-server >/dev/null; then scripts/setup-test.sh redis; fi
if ! command -v curl >/dev/null; then scripts/setup-test.sh curl; fi
# Redis does not choose a free port by itself. These are below those that outgoing connections take.
for _ in 1 2 3 4 5; do
  port=$((20000 + RANDOM % 10000))
  if start_redis; then break; fi
done
redis_answers || fail redis "Redis did not start"
start_pair a
a=$url
start_pair b
b=$url
start_pair c
echo "replicas    a, b and c, each with a fake engine of its own, over one Redis"

said= last= moved= whole=
exec 3< <(exec curl --silent --no-buffer "http://$a/v1/chat/completions?events=control" \
  --header 'content-type: application/json' \
  --data '{"model":"demo","stream":true,"temperature":0,"messages":[{"role":"user","content":"Why are there tides?"}]}')
pids[curl]=$!
printf 'answer      '
read_answer 25
end a KILL || true
end engine-a KILL || true
printf '\n            → kill -9 of replica a and its engine\n            '
end curl KILL || true
exec 3<&-

exec 3< <(exec curl --silent --no-buffer "http://$b/v1/streams/${last%%:*}/events?events=control" --header "last-event-id: $last")
pids[curl]=$!
read_answer 1000000
printf '\n'
if [[ -z $moved ]]; then fail b "nobody went on"; fi
if [[ -z $whole || $said != "$answer" ]]; then fail "$moved" "the answer is not whole"; fi
echo "result      every word once, in order, and one end, read on at replica b"
