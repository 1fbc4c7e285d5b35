"""The supervisor of one slot: takes a job, compiles it, runs it in boxes, judges it, answers.

A trusted, single-threaded process between the front, which speaks gRPC, and the boxes.

Covered: a job that the front gives up is killed at once; a defect in one job costs that job a fault
(INTERNAL), and the boxes are rebuilt; when the front goes away, everything here is killed.
Not covered: isolation, which is the boxes'; the cost of a comparison, which the judging bounds.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from assay.api.execution.v1 import execution_pb2
from assay.kit import log_format
from assay.kit.pool import frames
from assay.kit.pool.frames import Frame, FrameReader
from assay.sandbox import convert, results
from assay.sandbox.backend import SlotSettings
from assay.sandbox.backends import find_backend
from assay.sandbox.box import Boxes, Pump, Running
from assay.sandbox.domain import (
    BoxFile,
    RunLimits,
    RunMode,
    RunRequest,
    SandboxFault,
)
from assay.sandbox.judging.outputs import run_to_end
from assay.sandbox.judging.suite import judge
from assay.sandbox.judging.verdicts import killed_from_outside
from assay.sandbox.languages import CompileCache, LanguagePreparer, Toolchains, self_test
from assay.sandbox.prepared import CompileFailed
from assay.sandbox.settings import SupervisorSettings
from assay.sandbox.workers import kinds

MAX_RESULT_BYTES = 60 * 2**20
_RECEIVE_BYTES = 1 << 20
_CLOSE_ALARM_S = 15

_log = logging.getLogger(__name__)


class _Abandoned(BaseException):
    """The front gave the job up. A BaseException, so that it passes through everything."""


class _FrontGone(BaseException):
    """The front closed the link, or is dead."""


class KillingPump(Pump):
    """A pump that can end everything it drives."""

    def kill_all(self) -> None:
        """Kills every run and waits until each is dead and drained."""
        for running in self._alive():
            running.kill()
        while self._alive():
            self.step()

    def _alive(self) -> list[Running]:
        self._running = [running for running in self._running if running.record is None]
        return self._running


class Supervisor:
    """Serves the jobs of one link.

    Args:
        link: the supervisor's end of the socket pair.
        make_boxes: makes the boxes of this slot.
    """

    def __init__(
        self,
        link: socket.socket,
        settings: SupervisorSettings,
        make_boxes: Callable[[SupervisorSettings, Toolchains], Boxes],
    ) -> None:
        self._link = link
        self._settings = settings
        self._make_boxes = make_boxes
        self._pump = KillingPump()
        self._reader = FrameReader()
        self._waiting: deque[Frame] = deque()
        self._current: int | None = None
        self._toolchains = Toolchains.from_json(settings.toolchains)
        self._cache = (
            CompileCache(Path(settings.cache_dir), settings.cache_bytes)
            if settings.cache_dir
            else None
        )
        self._boxes = self._build()
        self._kinds: dict[bytes, Callable[[bytes], bytes]] = {
            kinds.EXECUTE: self._execute,
            kinds.TESTS: self._test,
            kinds.PROBE: self._probe,
        }

    def run(self) -> None:
        """Serves until the front is gone; nothing runs after that."""
        self._pump.watch(self._link.fileno(), self._on_link)
        try:
            self._prove()
            self._send(frames.READY, 0, b"{}")
            while True:
                while not self._waiting:
                    self._pump.step()
                self._serve(self._waiting.popleft())
        except (_FrontGone, BrokenPipeError, ConnectionResetError):
            return
        finally:
            # Should a box refuse to close, this process ends all the same.
            signal.alarm(_CLOSE_ALARM_S)
            self._boxes.close()

    def _prove(self) -> None:
        """Runs a program of our own, which also starts the box before the first job.

        Raises:
            SandboxFault: the program failed.
        """
        program = BoxFile("main.py", b"print(6 * 7)")
        running = self._boxes.candidate().start(
            RunRequest(RunMode.PYTHON, ("main.py",), (program,))
        )
        self._pump.add(running)
        record = self._pump.finish(running)
        if not record.ok or record.stdout.data != b"42\n":
            raise SandboxFault(
                "WORKER_DIED",
                f"the box does not work: its first program ended with {record.end.value}, "
                f"code {record.exit_code} {record.detail}",
            )

    def _build(self) -> Boxes:
        boxes = self._make_boxes(self._settings, self._toolchains)
        self._preparer = LanguagePreparer(self._toolchains, self._cache, boxes, self._pump)
        return boxes

    def _on_link(self) -> None:
        """Reads from the front; may be called in the middle of a run."""
        try:
            data = self._link.recv(_RECEIVE_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise _FrontGone
        abandoned = False
        for frame in self._reader.feed(data):
            if frame.kind not in frames.COMMANDS:
                self._waiting.append(frame)
            elif frame.number != self._current:
                self._drop(frame.number)
            elif frame.kind == frames.CANCEL:
                abandoned = True
        if abandoned:
            raise _Abandoned

    def _drop(self, number: int) -> None:
        for frame in self._waiting:
            if frame.number == number:
                self._waiting.remove(frame)
                self._send(frames.UNSTARTED, number)
                return

    def _serve(self, frame: Frame) -> None:
        self._current = frame.number
        self._send(frames.STARTED, frame.number)
        try:
            body, _, request_id = frames.read_job(frame.payload)
            log_format.request_id_var.set(request_id)
            answer, payload = frames.DONE, self._kinds[frame.kind](body)
        except _Abandoned:
            self._current = None
            self._pump.kill_all()
            answer, payload = _fault("CANCELLED", "the job was given up")
        except SandboxFault as fault:
            answer, payload = _fault(fault.reason, fault.message, **fault.metadata)
        except Exception as error:  # noqa: BLE001 - the worker loop
            # A defect of ours must cost this job only. What it left in the boxes is not known, so
            # they are built anew.
            _log.exception("the supervisor failed on a job")
            self._current = None
            self._boxes.close()
            self._boxes = self._build()
            answer, payload = _fault("INTERNAL", f"the sandbox failed ({type(error).__name__})")
        self._current = None
        self._send(answer, frame.number, payload)

    def _send(self, kind: bytes, number: int, payload: bytes = b"") -> None:
        self._link.sendall(frames.pack(kind, number, payload))

    def _execute(self, payload: bytes) -> bytes:
        job = execution_pb2.ExecutionJob.FromString(payload)
        result = execution_pb2.ExecutionResult()
        limits = convert.limits_from_proto(
            job.limits, self._defaults(job.program.language), self._settings.max_limits
        )
        program = convert.program_from_proto(job.program)
        fetch_paths = tuple(convert.check_path(path) for path in job.fetch_paths)
        box = self._boxes.candidate(program.text)
        try:
            prepared = self._preparer.prepare(program, limits)
        except CompileFailed as failed:
            failure = results.compile_failure_to_proto(failed.record, box.level)
            result.execution.CopyFrom(failure)
            return result.SerializeToString()
        request = prepared.run(stdin=job.stdin, limits=limits, fetch_paths=fetch_paths)
        record = run_to_end(box, self._pump, request)
        if killed_from_outside(record):
            record = run_to_end(box, self._pump, request)
        result.execution.CopyFrom(
            results.execution_to_proto(record, box.level, prepared.compile_output)
        )
        answer = result.SerializeToString()
        if len(answer) > MAX_RESULT_BYTES:
            raise SandboxFault(
                "MESSAGE_TOO_LARGE",
                f"the program's output and files have {len(answer)} bytes, and an answer may have "
                f"{MAX_RESULT_BYTES}: fetch fewer files, or lower limits.output_bytes",
            )
        return answer

    def _test(self, payload: bytes) -> bytes:
        job = execution_pb2.TestJob.FromString(payload)
        suite, limits = convert.suite_from_proto(
            job.suite, self._defaults(job.program.language), self._settings.max_limits
        )
        program = convert.program_from_proto(job.program)
        self._check_tested(program.language)
        level = self._boxes.candidate(program.text).level
        result = execution_pb2.TestJobResult()
        try:
            prepared = self._preparer.prepare(program, limits)
        except CompileFailed as failed:
            report = results.failed_compilation_to_proto(failed.record, suite)
        else:
            verdicts = judge(prepared, suite, self._boxes, self._pump, self._preparer)
            report = results.report_to_proto(verdicts, level)
        result.report.CopyFrom(report)
        return result.SerializeToString()

    def _check_tested(self, language: str) -> None:
        known, _ = self._toolchains.get(language)
        if not known.test_kinds:
            raise SandboxFault(
                "INVALID_TEST",
                f"A program in {known.name} is a suite of tests itself: it goes through Execute.",
                language=known.name,
            )

    def _probe(self, payload: bytes) -> bytes:
        missing = self_test(self._toolchains, payload.decode(), self._boxes, self._pump)
        return b"" if missing is None else missing.why.encode()

    def _defaults(self, language: str) -> RunLimits:
        known, _ = self._toolchains.get(language)
        return convert.clipped(known.limits, self._settings.max_limits)


def _fault(reason: str, message: str, **facts: str) -> tuple[bytes, bytes]:
    return frames.FAULT, frames.pack_fault(reason, message, facts)


def make_boxes(settings: SupervisorSettings, toolchains: Toolchains) -> Boxes:
    """The boxes of a slot, of the back end in the settings."""
    slot = SlotSettings(
        slot=settings.slot,
        level=settings.level,
        image=settings.image,
        read_only_paths=tuple(toolchains.read_only_paths),
        python_packages=settings.python_packages,
    )
    return find_backend(settings.backend).open(slot)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a supervisor on the link that the front passed."""
    parser = argparse.ArgumentParser(description="Internal process of the Assay sandbox.")
    parser.add_argument("--link-fd", type=int, required=True)
    parser.add_argument("--settings", required=True)
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    options = parser.parse_args(arguments)
    # A Ctrl-C in a terminal, and a process manager's SIGTERM, reach every process; the server
    # decides when to stop. A handler and not SIG_IGN, which the programs would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    log_format.set_up_worker(options.log_json)
    os.set_inheritable(options.link_fd, False)
    with socket.socket(fileno=options.link_fd) as link:
        Supervisor(link, SupervisorSettings.from_json(options.settings), make_boxes).run()


if __name__ == "__main__":
    main()
