"""Our sessions as `bench.sessions` drives them: a sandbox of its own, and the bare calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import grpc

from assay.api.session.v1 import session_pb2 as pb
from assay.api.session.v1 import session_pb2_grpc
from assay.clients import EmbeddedServices

SPARES = 4
SETTLE_S = 0.03  # a spare is made anew in the meantime
_TIMEOUT_S = 120.0


def now_ms() -> float:
    """A clock."""
    return time.perf_counter() * 1e3


def timed_ms(go: Callable[..., Any], *given: Any) -> tuple[Any, float]:
    """What it gives, and how long it took."""
    started = now_ms()
    value = go(*given)
    return value, now_ms() - started


def start(stack: ExitStack, *arguments: str, slots: int = 1) -> EmbeddedServices:
    """A sandbox for as long as the stack."""
    words = ("--slots", str(slots), "--languages", "python", "--log-level", "ERROR", *arguments)
    return stack.enter_context(EmbeddedServices(("sandbox",), arguments={"sandbox": words}))


@dataclass(frozen=True, slots=True)
class Live:
    """An open session."""

    calls: Calls
    id: str
    replica: str

    def run(self, code: str) -> pb.CellResult:
        """A cell.

        Raises:
            RuntimeError: it did not run to its end.
        """
        request = pb.ExecuteRequest(session_id=self.id, code=code)
        result = None
        for response in self.calls.stub.Execute(
            request, timeout=_TIMEOUT_S, metadata=(("assay-replica", self.replica),)
        ):
            result = response.result
        if result is None or result.end != pb.CELL_END_COMPLETED:
            raise RuntimeError(f"the cell {code[:60]!r} ended so: {result}")
        return result

    def checkpoint(self) -> pb.CheckpointResponse:
        """Keeps its state."""
        return self._call("Checkpoint", pb.CheckpointRequest(session_id=self.id))

    def rollback(self, checkpoint_id: str) -> pb.RollbackResponse:
        """Puts it back."""
        request = pb.RollbackRequest(session_id=self.id, checkpoint_id=checkpoint_id)
        return self._call("Rollback", request)

    def drop(self, checkpoint_id: str) -> None:
        """Frees a checkpoint."""
        request = pb.DropCheckpointsRequest(session_id=self.id, checkpoint_ids=[checkpoint_id])
        self._call("DropCheckpoints", request)

    def fork(self, count: int, checkpoint_id: str = "") -> pb.ForkResponse:
        """Copies it; the copies are `calls.adopt`ed."""
        request = pb.ForkRequest(session_id=self.id, count=count, checkpoint_id=checkpoint_id)
        return self._call("Fork", request)

    def close(self) -> None:
        """Ends it."""
        self.calls.close([self])

    def _call(self, method: str, request: Any) -> Any:
        call = getattr(self.calls.stub, method)
        return call(request, timeout=_TIMEOUT_S, metadata=(("assay-replica", self.replica),))


class Calls:
    """The methods of session.proto over one channel."""

    def __init__(self, target: str) -> None:
        self._channel = grpc.insecure_channel(target)
        self.stub = session_pb2_grpc.SessionServiceStub(self._channel)

    def __enter__(self) -> Calls:
        return self

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def create(self, **fields: Any) -> Live:
        """Opens a session."""
        [live] = self.adopt(self.stub.Create(pb.CreateRequest(**fields), timeout=_TIMEOUT_S))
        return live

    def adopt(self, response: pb.CreateResponse | pb.ForkResponse) -> list[Live]:
        """The sessions of an answer."""
        return [Live(self, session.id, session.replica) for session in response.sessions]

    def close(self, sessions: Sequence[Live]) -> None:
        """Ends sessions of one replica in one call."""
        request = pb.CloseRequest(session_ids=[live.id for live in sessions])
        replica = (("assay-replica", sessions[0].replica),)
        self.stub.Close(request, timeout=_TIMEOUT_S, metadata=replica)
