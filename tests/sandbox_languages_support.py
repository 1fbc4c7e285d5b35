"""What tests of the languages share: the machine's toolchains, a real box where there is one.

The jail runs the programs where the machine allows it; elsewhere the stand-in without isolation
does, and tests of hostile programs are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import RunLimits, RunRecord, SubmittedProgram
from assay.sandbox.jail import JailBoxes, JailConfig, detect
from assay.sandbox.languages import (
    LANGUAGES,
    CompileCache,
    LanguagePreparer,
    Toolchains,
    discover,
    warm_up,
)
from assay.sandbox.prepared import CompileFailed
from sandbox_support import ProcessBoxes

SLOT = 47
QUICK = RunLimits(compile_wall_s=100.0)


class Bench:
    """Prepares and runs programs as a slot does."""

    def __init__(self, toolchains: Toolchains, boxes: Boxes, pump: Pump, *, jailed: bool) -> None:
        self.toolchains = toolchains
        self.boxes = boxes
        self.pump = pump
        self.jailed = jailed
        self.preparer = LanguagePreparer(toolchains, None, boxes, pump)

    def need(self, language: str) -> Bench:
        """Itself, where the language's tools are on this machine."""
        if language not in self.toolchains.found:
            pytest.skip(self.toolchains.missing[language].why)
        return self

    def need_jail(self) -> Bench:
        if not self.jailed:
            pytest.skip("no namespaces on this machine: a hostile program is not run here")
        return self

    def cached(self, folder: Path) -> Bench:
        """The same with a cache of compilations."""
        bench = Bench(self.toolchains, self.boxes, self.pump, jailed=self.jailed)
        cache = CompileCache(folder)
        bench.preparer = LanguagePreparer(self.toolchains, cache, self.boxes, self.pump)
        return bench

    def execute(
        self,
        program: SubmittedProgram,
        stdin: bytes = b"",
        arguments: tuple[str, ...] = (),
        limits: RunLimits | None = None,
    ) -> RunRecord:
        """Runs a program once; the compiler's record where it does not compile."""
        limits = limits or LANGUAGES[program.language].limits.with_(
            compile_wall_s=QUICK.compile_wall_s, wall_s=60.0, cpu_s=60.0
        )
        try:
            prepared = self.preparer.prepare(program, limits)
        except CompileFailed as error:
            return error.record
        request = prepared.run(stdin=stdin, arguments=arguments, limits=limits)
        running = self.boxes.candidate().start(request)
        self.pump.add(running)
        return self.pump.finish(running)


@pytest.fixture(scope="module")
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    kept = request.config.cache.mkdir("assay-toolchains")
    toolchains = warm_up(discover(), kept)
    pump = Pump()
    jailed = detect().level == "namespaces"
    boxes = (
        JailBoxes(JailConfig(slot=SLOT, read_only_paths=toolchains.read_only_paths))
        if jailed
        else ProcessBoxes(pump)
    )
    yield Bench(toolchains, boxes, pump, jailed=jailed)
    boxes.close()
