"""Sessions over the real wire, for tests: a sandbox as a process, and its calls in short words."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import status_pb2

from assay.api.execution.v1 import execution_pb2
from assay.api.session.v1 import session_pb2 as pb
from assay.api.session.v1 import session_pb2_grpc
from assay.kit.errors import STATUS_DETAILS_KEY, error_info

HANDSHAKES = Path(__file__).parent / "abuse" / "programs" / "handshakes"
"""Programs that speak their keeper's protocol."""
PRELUDE = (HANDSHAKES / "_prelude.py").read_text()
"""What stands before each: how a program reaches its own end of the line."""
CALL_S = 60.0
FLAGS = ("--log-level", "ERROR", "--slots", "2", "--languages", "python")
ANY_FLOOR = ("--isolation-floor", "confined")
NAIVE = bool(os.environ.get("ASSAY_TEST_NAIVE_SESSIONS"))
"""Tests ask a server without walls instead: those of walls must then fail, those of laws hold."""


class Refused(Exception):
    """A call was answered with an error.

    Attributes:
        reason: of ErrorInfo; empty where there is none.
    """

    def __init__(self, error: grpc.RpcError) -> None:
        call: Any = error
        self.code: str = call.code().name
        pairs = dict(call.trailing_metadata() or ())
        details = pairs.get(STATUS_DETAILS_KEY, b"")
        info = error_info(status_pb2.Status.FromString(details))
        self.reason: str = info.reason
        self.metadata = dict(info.metadata)
        super().__init__(f"{self.code} {self.reason} {self.metadata}: {call.details()}")

    def must_be(self, reasons: Set[str]) -> None:
        """Fails the test where it was refused for another reason."""
        assert self.reason in reasons, self


@dataclass(frozen=True, slots=True)
class Cell:
    """What came of a cell; `end` is the contract's word in lower case, e.g. "raised"."""

    end: str
    stdout: str
    stderr: str
    value: str
    error: tuple[str, str]
    over: bool
    raw: pb.CellResult

    @property
    def seen(self) -> tuple[str, str, str, tuple[str, str]]:
        """What a program can decide: end, stdout, value, error."""
        return self.end, self.stdout, self.value, self.error

    @property
    def texts(self) -> str:
        """All that the program said."""
        return "\n".join((self.stdout, self.stderr, self.value, *self.error))


def _cell(result: pb.CellResult) -> Cell:
    name = pb.CellEnd.Name(result.end).removeprefix("CELL_END_").lower()
    return Cell(
        end=name,
        stdout=result.stdout.data.decode("utf-8", "backslashreplace"),
        stderr=result.stderr.data.decode("utf-8", "backslashreplace"),
        value=result.value.data["text/plain"].decode() if result.HasField("value") else "",
        error=(result.error.name, result.error.message),
        over=result.session_over,
        raw=result,
    )


def seconds(value: float) -> Duration:
    """A duration of the wire."""
    duration = Duration()
    duration.FromNanoseconds(round(value * 1e9))
    return duration


def limits(**values: float) -> pb.SessionLimits:
    """Limits by the contract's names; times in seconds."""
    stated = pb.SessionLimits()
    for name, value in values.items():
        if name.endswith("_time"):
            getattr(stated, name).CopyFrom(seconds(value))
        else:
            setattr(stated, name, int(value))
    return stated


class Session:
    """A session, as its owner holds it."""

    def __init__(self, server: Server, session: pb.Session) -> None:
        self.server, self.id, self.raw = server, session.id, session
        server.opened.append(self)
        self._about = (("assay-replica", session.replica),)

    def call(self, method: str, request: Any, timeout_s: float = CALL_S) -> Any:
        """A unary call about this session."""
        return self.server.call(method, request, timeout_s, self._about)

    def execute(
        self, code: str, *, wall_s: float = 0, cpu_s: float = 0, timeout_s: float = CALL_S
    ) -> Cell:
        """Runs a cell; the pieces of its output must be what the result holds."""
        request = pb.ExecuteRequest(session_id=self.id, code=code)
        if wall_s:
            request.wall_time.CopyFrom(seconds(wall_s))
        if cpu_s:
            request.cpu_time.CopyFrom(seconds(cpu_s))
        result, streamed = None, {1: b"", 2: b""}
        try:
            for message in self.server.stub.Execute(request, timeout_s, metadata=self._about):
                assert result is None, "something came after the result"
                if message.HasField("output"):
                    streamed[message.output.stream] += message.output.data
                elif message.HasField("result"):
                    result = message.result
        except grpc.RpcError as error:
            raise Refused(error) from error
        assert result is not None, "the stream ended without a result"
        assert streamed[1] == result.stdout.data
        assert streamed[2] == result.stderr.data
        return _cell(result)

    def value(self, expression: str) -> str:
        """The repr of an expression's value, from a cell that has to complete."""
        cell = self.execute(expression)
        assert cell.end == "completed", cell
        return cell.value

    def checkpoint(self) -> str:
        made: pb.CheckpointResponse = self.call(
            "Checkpoint", pb.CheckpointRequest(session_id=self.id)
        )
        return made.checkpoint_id

    def rollback(self, checkpoint: str) -> None:
        self.call("Rollback", pb.RollbackRequest(session_id=self.id, checkpoint_id=checkpoint))

    def drop(self, *checkpoints: str) -> None:
        request = pb.DropCheckpointsRequest(session_id=self.id, checkpoint_ids=checkpoints)
        self.call("DropCheckpoints", request)

    def fork(self, count: int = 1, *, checkpoint: str = "", reseed: bool = False) -> list[Session]:
        request = pb.ForkRequest(
            session_id=self.id, count=count, checkpoint_id=checkpoint, reseed=reseed
        )
        response = self.call("Fork", request)
        assert len(response.sessions) == count
        return [Session(self.server, made) for made in response.sessions]

    def put(self, files: Mapping[str, bytes]) -> None:
        wanted = [execution_pb2.SourceFile(path=p, content=c) for p, c in files.items()]
        self.call("PutFiles", pb.PutFilesRequest(session_id=self.id, files=wanted))

    def get(self, *paths: str) -> dict[str, bytes]:
        response = self.call("GetFiles", pb.GetFilesRequest(session_id=self.id, paths=paths))
        return {file.path: file.content for file in response.files}

    def close(self) -> None:
        self.server.call("Close", pb.CloseRequest(session_ids=[self.id]), CALL_S, self._about)


class Server:
    """A server of sessions.

    Attributes:
        pid: of its first process.
    """

    def __init__(self, address: str, pid: int) -> None:
        self.address, self.pid = address, pid
        self.opened: list[Session] = []
        self.channel = grpc.insecure_channel(address)
        self.stub = session_pb2_grpc.SessionServiceStub(self.channel)

    def call(
        self, method: str, request: Any, timeout_s: float = CALL_S, metadata: Any = None
    ) -> Any:
        try:
            return getattr(self.stub, method)(request, timeout_s, metadata=metadata)
        except grpc.RpcError as error:
            raise Refused(error) from error

    def create(
        self,
        count: int = 1,
        *,
        language: str = "python",
        files: Mapping[str, bytes] | None = None,
        lease_s: float = 0,
        **stated: float,
    ) -> list[Session]:
        """Opens sessions; further arguments are limits."""
        request = pb.CreateRequest(language=language, count=count, limits=limits(**stated))
        for path, content in (files or {}).items():
            request.files.add(path=path, content=content)
        if lease_s:
            request.lease.CopyFrom(seconds(lease_s))
        made = self.call("Create", request).sessions
        assert len(made) == count
        return [Session(self, one) for one in made]

    def one(self, **options: Any) -> Session:
        """Opens a session."""
        [session] = self.create(**options)
        return session

    def describe(self) -> pb.DescribeSessionsResponse:
        described: pb.DescribeSessionsResponse = self.call(
            "DescribeSessions", pb.DescribeSessionsRequest()
        )
        return described

    def close_opened(self) -> None:
        """Closes every session that was opened since the last time."""
        opened, self.opened = self.opened, []
        self.close_all(opened)

    def close_all(self, sessions: list[Session]) -> None:
        if sessions:
            self.call("Close", pb.CloseRequest(session_ids=[s.id for s in sessions]))


@contextlib.contextmanager
def sandbox(*flags: str, **environment: str) -> Iterator[Server]:
    """A sandbox for the length of the context, as a user starts it."""
    command = [sys.executable, "-m", "assay.sandbox", "--port", "0", *ANY_FLOOR, *FLAGS, *flags]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=None if "ASSAY_TEST_STDERR" in os.environ else subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,  # a signal to a whole group must not reach the tests
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith("assay sandbox ready on "):
                process.kill()
                raise AssertionError(f"the sandbox did not start: {process.communicate()[1]}")
            server = Server(line.split()[-1], process.pid)
            with server.channel:
                yield server
        finally:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def naive() -> Iterator[Server]:
    """Sessions without walls, in namespaces of their own so that an attack ends there."""
    script = Path(__file__).parent / "sessions_naive.py"
    with tempfile.TemporaryDirectory(prefix="assay-naive-", dir="/var/tmp") as folder:
        command = [
            "env",
            "--ignore-signal=USR1",
            "unshare",
            "--pid",
            "--net",
            "--mount",
            "--ipc",
            "--fork",
            "--kill-child",
        ]
        command += ["--mount-proc", sys.executable, str(script), folder]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "ready\n"
                server = Server(f"unix:{folder}/server.sock", process.pid)
                with server.channel:
                    yield server
            finally:
                process.kill()
                process.communicate()


@contextlib.contextmanager
def serving(*flags: str, **environment: str) -> Iterator[Server]:
    """The server that tests ask: the sandbox, or the one without walls."""
    with naive() if NAIVE else sandbox(*flags, **environment) as server:
        yield server
