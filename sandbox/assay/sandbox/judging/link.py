"""The supervisor's end of a candidate that answers calls.

Covered: an answer counts only if it echoes the random tag of the oldest unanswered request, so an
answer sent in advance, twice or out of turn ends the run. Its content costs what the candidate
chooses, so it is decoded within a budget (`read`).
Not covered: whether the program computed what it answers.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import Final

from assay.sandbox.box import Box, Pump, Running
from assay.sandbox.domain import EndKind, RunRecord, RunRequest, SandboxFault
from assay.sandbox.harness import protocol
from assay.sandbox.harness.codec import encode
from assay.sandbox.harness.protocol import (
    ANSWER,
    HELLO,
    REQUEST,
    TAG_BYTES,
    ProtocolError,
    Raised,
    Returned,
)
from assay.sandbox.harness.references import Ref
from assay.sandbox.judging.text import one_line
from assay.sandbox.judging.verdicts import killed_from_outside

GRACE_S: Final = 1.0
_FILES: Final = b"the program's files:"  # as the child says where they do not fit on its disk
FORGED: Final = "it answered what was not asked, or with what is no answer"


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """The program's answer to one request.

    Attributes:
        value: what it returned, a plain value, perhaps with `Ref` in it.
        whole: there is no `Ref` in it.
        raised: what it raised instead, in one line; None if it returned.
        memory: it raised MemoryError.
    """

    value: object = None
    whole: bool = True
    raised: str | None = None
    memory: bool = False


def await_hello(running: Running, pump: Pump) -> None:
    """Waits until a harness is up, or has ended in a way that the caller judges.

    That is: its limits do not hold the program's files or the harness, or somebody killed it.

    Raises:
        SandboxFault: WORKER_DIED, it never came up; nothing of the program has run by then.
    """
    while not running.frames and running.record is None:
        pump.step()
    if running.frames and running.frames[0][:1] == HELLO:
        running.frames.popleft()
        return
    running.kill()
    record = pump.finish(running)
    too_large = record.end is EndKind.EXITED and record.stderr.data.startswith(_FILES)
    if too_large or record.end is EndKind.MEMORY_LIMIT or killed_from_outside(record):
        return
    told = record.stderr.data[-200:].decode("utf-8", "replace")
    message = one_line(f"the harness did not come up ({record.end.value}): {told}")
    raise SandboxFault("WORKER_DIED", message)


class CandidateLink:
    """A started candidate. Requests may be sent ahead; answers come in their order."""

    def __init__(self, box: Box, pump: Pump, request: RunRequest) -> None:
        self._pump = pump
        self.running = box.start(request)
        pump.add(self.running)
        self._is_up = False
        self._tags: deque[bytes] = deque()

    @property
    def pending(self) -> int:
        """How many requests have no answer yet."""
        return len(self._tags)

    def ask(self, operation: str, *arguments: object) -> None:
        """Sends a request.

        Raises:
            CodecError: an argument is no plain value.
        """
        tag = secrets.token_bytes(TAG_BYTES)
        content = encode([operation, *arguments])
        self.running.send(protocol.frame(REQUEST, tag, content))
        self._tags.append(tag)

    def come_up(self) -> None:
        """Waits until the harness is up; the program's own time begins then.

        Raises:
            SandboxFault: WORKER_DIED, it did not come up.
        """
        if not self._is_up:
            await_hello(self.running, self._pump)
            self._is_up = True

    def answer(self, until_s: float = float("inf")) -> bytes | None:
        """The content of the next answer; None where the run has ended or time is up.

        Args:
            until_s: how long to wait for it, on time.monotonic().

        Raises:
            SandboxFault: WORKER_DIED, the harness did not come up.
        """
        running = self.running
        self.come_up()
        while not running.frames:
            left_s = until_s - time.monotonic()
            if running.record is not None or left_s <= 0:
                return None
            self._pump.step(None if left_s == float("inf") else left_s)
        kind, tag, content = protocol.split(running.frames.popleft())
        if kind != ANSWER or not self._tags or tag != self._tags.popleft():
            self.forged()
            return None
        return content

    def forged(self) -> RunRecord:
        """Ends the run for an invalid answer."""
        return self.kill(EndKind.SECURITY_VIOLATION, FORGED)

    def kill(self, end: EndKind | None, detail: str = "") -> RunRecord:
        """Ends the run and waits for its end."""
        self.running.kill(end, detail)
        return self._pump.finish(self.running)

    def finish(self) -> RunRecord:
        """Lets the program end after its last answer; nothing is judged from here on."""
        self.running.send(protocol.frame(REQUEST, protocol.NO_TAG, encode(["bye"])))
        self._pump_until(time.monotonic() + GRACE_S)
        record = self.running.record
        return record or self.kill(EndKind.EXITED, "it did not end after its last answer")

    def _pump_until(self, until_s: float) -> None:
        while self.running.record is None and time.monotonic() < until_s:
            self._pump.step(max(0.0, until_s - time.monotonic()))

    def close(self) -> None:
        """Makes sure that nothing runs on."""
        if self.running.record is None:
            self.kill(None)


def read(content: bytes) -> ProgramAnswer | None:
    """Decodes an answer; None where it is none. Costs what the candidate chooses."""
    references: list[Ref] = []

    def stays(ref: Ref) -> Ref:
        references.append(ref)
        return ref

    try:
        answer = protocol.read_answer(content, resolve=stays)
        if isinstance(answer, Returned):
            return ProgramAnswer(protocol.single(answer), not references)
    except ProtocolError:
        return None
    return _raised(answer) if isinstance(answer, Raised) else ProgramAnswer(raised="StopIteration")


def _raised(raised: Raised) -> ProgramAnswer:
    line = one_line(f"{raised.type}: {raised.text}" if raised.text else raised.type)[:250]
    where = one_line(raised.where)[:40]
    memory = "MemoryError" in raised.bases
    return ProgramAnswer(raised=f"{line} ({where})" if where else line, memory=memory)
