"""What JSON over HTTP costs the server beside protobuf over gRPC, by the size of the call.

One server answers both, by turns. The verifier is `exact` and the cache is off, so that what is
left is the protocol, the codec and the scorer. CPU of the server is its process's own account
(/proc). The HTTP client is Python's http.client over one kept connection, with bodies made before;
the gRPC client makes one call at a time as well.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import grpc

from assay.api.reward.v1 import reward_pb2, reward_pb2_grpc
from assay.kit.limits import channel_options
from bench.common import interleaved, spread
from bench.wire import cpu_s

ITEMS = {1: 1000, 64: 16384, 512: 16384}
ROUNDS = 5
FLAGS = ("--port", "0", "--http-port", "0", "--cache-entries", "0", "--log-level", "ERROR",
         "--workers", "1")  # fmt: skip


def run() -> None:
    """Prints a line for each protocol and size of call."""
    print(f"\nhttp: `exact`, {ROUNDS} rounds, protocols and sizes take turns")
    print("protocol, items a call     server CPU us an item (median [min, max])   wall s a round")
    command = [sys.executable, "-m", "assay.reward_server", *FLAGS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as server:
        try:
            assert server.stdout is not None
            addresses = [server.stdout.readline().split()[-1] for _ in range(2)]
            _measure(server.pid, *addresses)
        finally:
            server.terminate()


def _measure(pid: int, grpc_address: str, http_address: str) -> None:
    connection = http.client.HTTPConnection(http_address, timeout=60)
    with grpc.insecure_channel(grpc_address, options=channel_options()) as channel:
        stub = reward_pb2_grpc.RewardServiceStub(channel)
        contestants: dict[str, Callable[[], None]] = {}
        used: dict[str, list[float]] = {}
        for size, items in ITEMS.items():
            for name, call in (
                ("gRPC", partial(_grpc, stub, _batch(size))),
                ("HTTP /v1/score", partial(_post, connection, "/v1/score", _json(size))),
                ("HTTP /v1/score:stream",
                 partial(_post, connection, "/v1/score:stream", _json(size))),
                ("HTTP /get_reward",
                 partial(_post, connection, "/get_reward?verifier=exact", _openrlhf(size))),
            ):  # fmt: skip
                key = f"{name}, {size}"
                used[key] = []
                contestants[key] = partial(_round, call, pid, items, size, used[key])
        for contestant in contestants.values():  # everybody has been there once
            contestant()
        for values in used.values():
            values.clear()
        walls = interleaved(contestants, ROUNDS)
    for key, values in used.items():
        middle = statistics.median(values)
        bounds = f"[{min(values):.0f}, {max(values):.0f}]"
        print(f"{key:28s} {middle:10.0f} {bounds:20s} {spread(walls[key])}")


def _round(call: Callable[[], None], pid: int, items: int, size: int, used: list[float]) -> None:
    before = cpu_s(pid)
    for _ in range(items // size):
        call()
    used.append((cpu_s(pid) - before) / items * 1e6)


def _grpc(stub: reward_pb2_grpc.RewardServiceStub, batch: reward_pb2.BatchScoreRequest) -> None:
    response = stub.BatchScore(batch, timeout=60)
    assert len(response.results) == len(batch.items)


def _post(connection: http.client.HTTPConnection, path: str, body: bytes) -> None:
    connection.request("POST", path, body)
    response = connection.getresponse()
    read = response.read()
    assert response.status == 200, read


def _batch(size: int) -> reward_pb2.BatchScoreRequest:
    batch = reward_pb2.BatchScoreRequest()
    for index in range(size):
        item = batch.items.add(id=str(index), verifier="exact", response=f"answer {index}")
        item.reference.text = f"answer {index}"
    return batch


def _json(size: int) -> bytes:
    items = [
        {"id": str(i), "verifier": "exact", "response": f"answer {i}",
         "reference": {"text": f"answer {i}"}}
        for i in range(size)
    ]  # fmt: skip
    return json.dumps({"items": items}).encode()


def _openrlhf(size: int) -> bytes:
    answers = [f"answer {index}" for index in range(size)]
    body = {"query": [f"what?{one}" for one in answers], "prompts": ["what?"] * size}
    return json.dumps({**body, "labels": answers}).encode()
