"""The genrm service as a process, for tests: what is started, asked, and looked at from outside."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc

from assay.api.common.v1 import common_pb2
from assay.api.judge.v1 import judge_pb2, judge_pb2_grpc
from assay.api.process.v1 import process_pb2_grpc
from assay.kit.limits import channel_options
from process_tree import children, named

# The tests' machine is small, and models of two layers gain nothing from threads.
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
# Random weights judge nothing; tests of the self-test and of the floor ask for them.
UNTESTED = ("--no-self-test", "--least-mass", "0")
SKY = (common_pb2.ChatMessage(role="user", content="What colour is the sky?"),)


def launch(*flags: str | Path, **environment: str) -> subprocess.Popen[str]:
    """Starts the server as a user does."""
    return subprocess.Popen(
        [sys.executable, "-m", "assay.genrm", *UNTESTED, "--port", "0", *map(str, flags)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD, **environment},
    )


def ready(process: subprocess.Popen[str]) -> str:
    """The address from the line that says that it serves."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("assay genrm ready on "):
        process.kill()
        raise AssertionError(f"genrm did not start: {process.communicate()[1]}")
    return line.split()[-1]


@contextlib.contextmanager
def running(*flags: str | Path, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A server for the length of the context; its stderr is drained at the end only."""
    with launch("--log-level", "ERROR", *flags, **environment) as process:
        try:
            yield ready(process), process
        finally:
            process.terminate()
            try:
                process.communicate(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


class Stubs:
    """Both services of one address, over the real wire; and where its metrics are, if anywhere."""

    metrics = ""

    def __init__(self, target: str) -> None:
        self.channel = grpc.insecure_channel(target, options=channel_options())
        self.judge = judge_pb2_grpc.JudgeServiceStub(self.channel)
        self.process = process_pb2_grpc.ProcessRewardServiceStub(self.channel)


@contextlib.contextmanager
def stubs(target: str) -> Iterator[Stubs]:
    """Stubs for the length of the context."""
    made = Stubs(target)
    try:
        yield made
    finally:
        made.channel.close()


def item(item_id: str, response: str, **against: str) -> judge_pb2.JudgeItem:
    """A response about the sky."""
    return judge_pb2.JudgeItem(id=item_id, prompt=SKY, response=response, **against)


def pair(item_id: str, a: str, b: str) -> judge_pb2.PairItem:
    """Two responses about the sky."""
    return judge_pb2.PairItem(id=item_id, prompt=SKY, response_a=a, response_b=b)


def workers(pid: int) -> list[int]:
    """The processes of a server in which models run."""
    return named(children(pid), "assay.genrm")
