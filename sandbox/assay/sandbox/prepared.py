"""A program that is ready to run: the interface between languages and judging."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from assay.sandbox.domain import CapturedOutput, RunLimits, RunRecord, RunRequest, SubmittedProgram


class Prepared(Protocol):
    """A program, compiled where its language needs that."""

    program: SubmittedProgram
    compile_output: CapturedOutput
    """The compiler's output; empty where nothing was compiled."""

    def run(
        self,
        *,
        stdin: bytes,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        limits: RunLimits,
        fetch_paths: tuple[str, ...] = (),
    ) -> RunRequest:
        """One run of the program (PYTHON or EXEC mode).

        Arguments and environment come after the program's own.
        """

    def candidate(self, *, limits: RunLimits) -> RunRequest:
        """The program in CANDIDATE mode, which answers calls.

        Raises:
            SandboxFault: INVALID_TEST, the language answers no calls; the message names the kinds
                of test that it serves.
        """


class CompileFailed(Exception):
    """The program does not compile: a verdict on it."""

    def __init__(self, record: RunRecord) -> None:
        super().__init__("the program does not compile")
        self.record = record
        """The compiler's run, with `end` COMPILE_ERROR or the limit that it hit."""


class Preparer(Protocol):
    """Makes programs ready; compiles each once."""

    def prepare(self, program: SubmittedProgram, limits: RunLimits) -> Prepared:
        """Compiles a program in the slot's box, or takes it from the cache.

        Raises:
            CompileFailed: it does not compile.
            SandboxFault: UNKNOWN_LANGUAGE, INVALID_PROGRAM, or a failure of the sandbox.
        """
