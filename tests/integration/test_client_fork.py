"""A forked child of a process in which gRPC's asyncio side was used."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, gc, os, signal, time
import grpc
import assay.clients

async def use():
    kept = [grpc.aio.insecure_channel("127.0.0.1:1")]
    kept.append(kept)  # garbage that only the collector finds

gc.disable()
asyncio.run(use())
pid = os.fork()
if pid == 0:
    gc.collect()
    os._exit(7)
for _ in range(100):
    ended, status = os.waitpid(pid, os.WNOHANG)
    if ended:
        print("ended", os.waitstatus_to_exitcode(status))
        break
    time.sleep(0.1)
else:
    os.kill(pid, signal.SIGKILL)
    print("waits for ever")
"""


def test_the_parents_garbage_does_not_hold_a_child_up() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "ended 7"
