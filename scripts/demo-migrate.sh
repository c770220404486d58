#!/usr/bin/env bash
# Two fake inference servers, one answer, and a kill -9 in the middle of it. Everything lies in a temporary folder and is
# gone at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
streamweld=${STREAMWELD:-target/release/streamweld}
answer="The tide comes in twice a day, because the Moon pulls at the sea on the near side more than at the Earth below it, \
and at the Earth more than at the sea on the far side. Two bulges of water stand there, and the Earth turns under both of them."
demo=demo-migrate
source scripts/processes.sh

are_examined() {
  local backends
  backends=$("$streamweld" backends list --admin "http://$admin" --format json 2>/dev/null) || return 1
  [[ $(grep -o '"settled": *true' <<<"$backends" | wc -l) == 2 ]]
}

start_engine() { # NAME
  start "$1" "$streamweld" mock --listen 127.0.0.1:0 --set engine=vllm --set pace=60ms --set "text=\"$answer\""
  wait_for "$1" url_in_log "$1" "mock listening on" || fail "$1" "the engine $1 did not start"
}

if ! command -v curl >/dev/null; then scripts/setup-test.sh curl; fi
start_engine a
a=$url
start_engine b
b=$url
start serve "$streamweld" serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0 \
  --backend "http://$a,name=a,engine=vllm,group=demo" --backend "http://$b,name=b,engine=vllm,group=demo"
wait_for serve url_in_log serve "admin listener on" || fail serve "Streamweld did not start"
admin=$url
url_in_log serve "data listener on"
data=$url
echo "backends    a and b, two fake engines in one group"
wait_for serve are_examined || fail serve "the backends were not examined"
echo "examined    both go on with an answer by token ids"

# The answer, as an app gets it; and what Streamweld has to say of it, which an app that does not ask for it is not shown.
exec 3< <(exec curl --silent --no-buffer --dump-header "$folder/head" "http://$data/v1/chat/completions?events=control" \
  --header 'content-type: application/json' \
  --data '{"model":"demo","stream":true,"temperature":0,"messages":[{"role":"user","content":"Why are there tides?"}]}')
pids[curl]=$!
said= killed= tokens=0 moved= whole=
printf 'answer      '
while IFS= read -r line <&3; do
  if [[ $line =~ \"from\":\"([^\"]*)\",\"to\":\"([^\"]*)\".*\"method\":\"([^\"]*)\" ]]; then
    moved=yes
    printf '\n            → %s goes on, by %s\n            ' "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
  elif [[ $line =~ \"content\":\"([^\"]+)\" ]]; then
    said+=${BASH_REMATCH[1]}
    printf '%s' "${BASH_REMATCH[1]}"
    tokens=$((tokens + 1))
  elif [[ $line == "data: [DONE]"* ]]; then
    whole=yes
  fi
  if ((tokens == 25)) && [[ -z $killed ]]; then
    id=$(tr -d '\r' <"$folder/head" | sed -n 's/^x-streamweld-stream-id: //Ip')
    state=$("$streamweld" streams show "$id" --admin "http://$admin" --format json)
    killed=$(tr -d ' \n' <<<"$state" | sed -n 's/.*"backends":\["\([^"]*\)".*/\1/p')
    end "$killed" KILL || true
    printf '\n            → kill -9 %s\n            ' "$killed"
  fi
done
printf '\n'
if [[ -z $moved ]]; then fail serve "nobody went on"; fi
if [[ -z $whole || $said != "$answer" ]]; then fail serve "the answer is not whole"; fi
echo "result      every word once, in order, and one end"
