"""SandboxFusion's `/run_code` and `/submit`, answered by us and by SandboxFusion itself.

    ASSAY_BENCH_PEER=PEER python -m bench sandbox-http

Both get the same requests over HTTP, on eight kept connections, in turns on the same machine: a
program that prints, and a submission of ten cases that it passes. The peer's set-up steps stand in
`bench.sandbox_peer`; it is measured without isolation, its fastest mode, against our sandbox with
all that this machine allows. Without the peer ours is measured alone.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import statistics
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass

from assay.clients import EmbeddedServices
from bench.common import print_machine, spread
from bench.sandbox_peer import Peer, home

ROUNDS = int(os.environ.get("ASSAY_BENCH_ROUNDS", "7"))
CONNECTIONS = 8
CASES = 10
OURS, PEER = "ours", "SandboxFusion, no isolation"
_CODE = "print(int(input()) * 2)"
_SUBMIT = {
    "dataset": "bench",
    "id": 1,
    "completion": f"```python\n{_CODE}\n```",
    "config": {
        "dataset_type": "CommonOJDataset",
        "language": "python",
        "provided_data": {
            "id": 1,
            "content": "",
            "labels": {},
            "test": [
                {"input": {"stdin": str(n)}, "output": {"stdout": str(2 * n)}} for n in range(CASES)
            ],
        },
    },
}


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of request.

    Attributes:
        name: for people.
        path: where it goes.
        body: its JSON.
        field: of the answer,
        expected: which must have this value.
        counts: requests of one round, by contestant: so many that a round is a second or two.
    """

    name: str
    path: str
    body: str
    field: str
    expected: object
    counts: dict[str, int]


WORKS = (
    Work("/run_code, prints", "/run_code", json.dumps({"code": "print(1)", "language": "python"}),
         "status", "Success", {OURS: 200, PEER: 48}),
    Work(f"/submit, {CASES} cases", "/submit", json.dumps(_SUBMIT), "accepted", True,
         {OURS: 48, PEER: 8}),
)  # fmt: skip


def turn(port: int, work: Work, count: int) -> tuple[float, list[float]]:
    """Requests a second of one round, and the seconds of each.

    Raises:
        RuntimeError: an answer is not the right one.
    """
    latencies: list[float] = []
    errors: list[str] = []
    waiting = iter(range(count))

    def drive() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            for _ in waiting:
                started = time.perf_counter()
                answer = _post(connection, work)
                latencies.append(time.perf_counter() - started)
                if answer.get(work.field) != work.expected:
                    errors.append(str(answer)[:300])
                    return
        finally:
            connection.close()

    threads = [threading.Thread(target=drive) for _ in range(CONNECTIONS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.perf_counter() - started
    if errors or len(latencies) < count:
        raise RuntimeError(f"{work.name}: {errors[:1] or 'a connection broke'}")
    return count / took_s, latencies


def _post(connection: http.client.HTTPConnection, work: Work) -> dict[str, object]:
    for last in (False, True):
        try:
            connection.request("POST", work.path, work.body, {"content-type": "application/json"})
            found: dict[str, object] = json.loads(connection.getresponse().read())
        except (ConnectionError, http.client.HTTPException):
            connection.close()  # the peer closes connections that were idle for five seconds
            if last:
                raise
        else:
            return found
    raise AssertionError("the loop returns or raises")


def run() -> None:
    """Measures and prints."""
    port = _free_port()
    flags = {
        "sandbox": ["--languages", "python", "--http-port", str(port), "--log-level", "WARNING"],
    }
    with ExitStack() as stack:
        stack.enter_context(EmbeddedServices(("sandbox",), arguments=flags))
        ports = {OURS: port}
        folder = home()
        if folder is None:
            print("(no peer: see bench/sandbox_peer.py)")
        else:
            ports[PEER] = stack.enter_context(Peer(folder, "none")).port
        for work in WORKS:
            _measure(work, ports)


def _measure(work: Work, ports: dict[str, int]) -> None:
    for port in ports.values():
        turn(port, work, CONNECTIONS)  # warm
    rates: dict[str, list[float]] = {name: [] for name in ports}
    latencies: dict[str, list[float]] = {name: [] for name in ports}
    for number in range(ROUNDS):
        order = list(ports) if number % 2 else list(reversed(ports))
        for name in order:
            rate, seconds = turn(ports[name], work, work.counts[name])
            rates[name].append(rate)
            latencies[name] += seconds
    print(f"\n{work.name}, {CONNECTIONS} connections, median [least, greatest] of {ROUNDS} rounds")
    for name, values in rates.items():
        middle = 1000 * statistics.median(latencies[name])
        late = 1000 * statistics.quantiles(latencies[name], n=20)[-1]
        print(f"  {name:28} {spread(values)} a second; median {middle:.0f} ms, p95 {late:.0f} ms")
    if PEER in rates:
        ratios = [a / b for a, b in zip(rates[OURS], rates[PEER], strict=True)]
        print(f"  {'ours over the peer':28} {spread(ratios)}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    print_machine()
    run()
