#!/bin/sh
# The whole program on this kernel: a slow request through the proxy must get a timeline that names the sleep, joined to the thread that slept.
set -e
cd /tmp
printf 'listen: 127.0.0.1:8080\nservers: [{name: a, address: "127.0.0.1:9201"}]\nslow: {threshold: 20ms}\ntimelines: {path: /tmp/timelines}\ntrace: {kernel: required}\n' >tailor.yaml
tailor doctor || true
slow_server 9201 50 &
server=$!
tailor proxy -c tailor.yaml &
proxy=$!
trap 'kill $server $proxy' EXIT
for attempt in $(seq 50); do wget -q -O answer http://127.0.0.1:8080/ 2>/dev/null && break || sleep 0.2; done
sleep 2 && wget -q -O answer http://127.0.0.1:8080/seen && sleep 2
tailor dump /tmp/timelines | tee dump
grep -q 'because of  sleeping' dump && grep -q 'joined to the request: certain' dump && ! grep -q 'page fault durations' dump
