#!/bin/sh
# Rewards over HTTP, from anything that can POST JSON.
#
#     assay up --http-port 8080       # in a checkout
#     sh examples/http.sh
#
# Run in the tests as it stands, against a real server.
set -eu
URL="${ASSAY_URL:-http://127.0.0.1:8080}"
curl --silent --show-error --fail-with-body "$URL/v1/score" --data '{"items": [
  {"task": "math", "response": "so it is \\boxed{42}", "reference": "42"},
  {"task": "math", "response": "so it is \\boxed{41}", "reference": "42"},
  {"task": "math", "response": "so it is \\boxed{42}", "reference": " "}]}'
echo
