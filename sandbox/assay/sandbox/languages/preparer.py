"""Makes programs ready: lays out their files, compiles them in the candidate's box, once.

A compiler that reads a hostile program is treated as hostile: it runs in the candidate's box, with
the program alone, under limits of its own. Its end is the program's doing (CompileFailed), but for
a missing compiler or a broken box (SandboxFault).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import (
    MIB,
    BoxFile,
    CapturedOutput,
    EndKind,
    RunLimits,
    RunMode,
    RunRecord,
    RunRequest,
    SandboxFault,
    SubmittedProgram,
)
from assay.sandbox.judging.verdicts import killed_from_outside
from assay.sandbox.languages.arrange import arrange, check_arguments, invalid, sources
from assay.sandbox.languages.cache import CompileCache, Compiled
from assay.sandbox.languages.language import (
    OURS,
    Compile,
    Language,
    Layout,
    Values,
    fill,
    fill_text,
)
from assay.sandbox.languages.products import executable_memfd, unpack_tree
from assay.sandbox.languages.table import LANGUAGES
from assay.sandbox.languages.toolchains import Toolchain, Toolchains
from assay.sandbox.prepared import CompileFailed

_PRODUCT = f"{OURS}/product"
_PLACE_KEEPER = BoxFile(f"{OURS}/here", b"")
_HEAP_SHARE = 0.75
_LEAST_HEAP_MIB = 16
_NOT_STARTED = (126, 127)  # by which a shell says that a command is no program, or is not there

_OUT_OF_MEMORY = re.compile(
    rb"virtual memory exhausted|out of memory|OutOfMemoryError|cannot allocate memory"
    rb"|\bKilled\b|No space left on device|Resource temporarily unavailable|signal: killed",
    re.IGNORECASE,
)
"""Messages of compilers short of memory; their result is not kept."""

_PART_KILLED = re.compile(rb"Killed signal terminated program|\(signal: 9, SIGKILL|signal: killed")
"""Messages of compiler drivers of which a process was killed."""


class PreparedProgram:
    """A program that is ready to run. It and its requests hold the executable in memory."""

    def __init__(
        self,
        program: SubmittedProgram,
        language: Language,
        values: Values,
        layout: Layout,
        compiled: Compiled | None,
    ) -> None:
        self.program = program
        self.compile_output = compiled.output if compiled else CapturedOutput()
        self._language = language
        self._values = values
        self._layout = layout
        self._executable: int | None = None
        self._files = (*layout.files, *language.files)
        if compiled and language.compile:
            self._files = tuple(file for file in self._files if file.path != layout.main)
            if language.compile.tree:
                self._add_tree(unpack_tree(compiled.product, language.compile.unpack_to))
            else:
                self._executable = executable_memfd(compiled.product)

    def _add_tree(self, tree: tuple[BoxFile, ...]) -> None:
        made = {file.path for file in tree}
        self._files = (*(file for file in self._files if file.path not in made), *tree)

    def run(
        self,
        *,
        stdin: bytes,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        limits: RunLimits,
        fetch_paths: tuple[str, ...] = (),
    ) -> RunRequest:
        """See `assay.sandbox.prepared.Prepared.run`.

        Raises:
            SandboxFault: INVALID_PROGRAM, the arguments cannot be given to it.
        """
        check_arguments(arguments)
        every = (*self.program.arguments, *arguments)
        files = self._files
        if self._language.source_on_stdin:
            if every:
                raise invalid(f"a program in {self._language.name} takes no arguments")
            stdin += b"\n;\n" + self._layout.text.encode()
            files = tuple(file for file in files if file.path != self._layout.main)
        values = {**self._values, **_heap(limits), "arguments": every}
        python = not self._language.run
        starter = (self._language.starter,) if self._language.starter else ()
        argv = (*starter, self._layout.main, *every) if python else fill(self._language.run, values)
        return RunRequest(
            mode=RunMode.PYTHON if python else RunMode.EXEC,
            argv=argv,
            files=files,
            stdin=stdin,
            environment={
                **_environment(self._language, values),
                **self.program.environment,
                **(environment or {}),
            },
            limits=limits,
            executable=self._executable,
            fetch_paths=fetch_paths,
        )

    def candidate(self, *, limits: RunLimits) -> RunRequest:
        """See `assay.sandbox.prepared.Prepared.candidate`.

        Raises:
            SandboxFault: INVALID_TEST, its language answers none.
        """
        if "call" not in self._language.test_kinds:
            served = ", ".join(self._language.test_kinds)
            who = ", ".join(sorted(n for n, lang in LANGUAGES.items() if "call" in lang.test_kinds))
            raise SandboxFault(
                "INVALID_TEST",
                f"Programs in {self._language.name} serve tests of kind {served}; calls and"
                f" assertions need {who}.",
                language=self._language.name,
            )
        return RunRequest(
            mode=RunMode.CANDIDATE,
            argv=(self._layout.main, *self.program.arguments),
            files=self._files,
            environment=dict(self.program.environment),
            limits=limits,
        )


class LanguagePreparer:
    """Makes programs ready, in one slot.

    Args:
        toolchains: of this machine.
        cache: keeps compilations; None: every program compiles anew.
        boxes: the slot's.
        pump: drives them.
    """

    def __init__(
        self, toolchains: Toolchains, cache: CompileCache | None, boxes: Boxes, pump: Pump
    ) -> None:
        self._toolchains = toolchains
        self._cache = cache
        self._boxes = boxes
        self._pump = pump

    def prepare(self, program: SubmittedProgram, limits: RunLimits) -> PreparedProgram:
        """Compiles a program, or takes it from the cache.

        Raises:
            CompileFailed: it does not compile.
            SandboxFault: UNKNOWN_LANGUAGE, INVALID_PROGRAM, or a failure of the sandbox.
        """
        language, chain = self._toolchains.get(program.language)
        layout = arrange(program, language, warm=bool(chain.warm))
        values: Values = {**chain.values, **language.plan(layout), "main": layout.main}
        compiled = None
        if language.compile is not None:
            compiled = self._compile(language, chain, layout, values, limits)
        return PreparedProgram(program, language, values, layout, compiled)

    def _compile(
        self,
        language: Language,
        chain: Toolchain,
        layout: Layout,
        values: Values,
        limits: RunLimits,
    ) -> Compiled:
        how = language.compile
        assert how is not None  # noqa: S101 - the caller has looked
        request = _compilation(language, how, layout, values, limits.compile_wall_s)
        key = _key(chain, request)
        compiled = self._cache.get(key) if self._cache else None
        if compiled is None:
            record = self._run(request)
            if killed_from_outside(record) or _PART_KILLED.search(record.stderr.data):
                record = self._run(request)
            compiled = _outcome(record)
            if self._cache and _lasting(compiled):
                self._cache.put(key, compiled)
        if compiled.failed:
            raise CompileFailed(_failure(compiled))
        return compiled

    def _run(self, request: RunRequest) -> RunRecord:
        running = self._boxes.candidate().start(request)
        self._pump.add(running)
        return self._pump.finish(running)


def _compilation(
    language: Language, how: Compile, layout: Layout, values: Values, wall_s: float
) -> RunRequest:
    limits = replace(how.limits, wall_s=wall_s, compile_wall_s=wall_s)
    every = {
        **values,
        **_heap(limits),
        "main": f"./{layout.main}",
        "sources": sources(layout, how.suffixes),
        "product": _PRODUCT,
    }
    return RunRequest(
        mode=RunMode.EXEC,
        argv=fill(how.argv, every),
        files=(*layout.files, *how.files, _PLACE_KEEPER),
        environment=_environment(language, every),
        limits=limits,
        fetch_paths=(_PRODUCT,),
        fetch_bytes=64 * MIB,
    )


def _lasting(compiled: Compiled) -> bool:
    """Whether the result would be the same next time, so that it may be kept."""
    if not compiled.failed:
        return True
    return compiled.exit_code != 0 and not _OUT_OF_MEMORY.search(compiled.output.data)


def _outcome(record: RunRecord) -> Compiled:
    """The result of a compiler's run.

    Raises:
        CompileFailed: a limit or a signal ended it; the next time might go otherwise.
        SandboxFault: INTERNAL, there was no compiler where it should be.
    """
    output = _joined(record.stdout, record.stderr)
    product = next((file.content for file in record.files if file.path == _PRODUCT), b"")
    if record.end is not EndKind.EXITED:
        record = replace(record, stdout=CapturedOutput(), stderr=output, files=())
        if record.end is EndKind.SIGNALLED:
            detail = record.detail or f"signal {record.signal} ended the compiler"
            record = replace(record, end=EndKind.COMPILE_ERROR, detail=detail)
        raise CompileFailed(record)
    if record.exit_code in _NOT_STARTED:
        words = output.data[-200:].decode(errors="replace").strip()
        raise SandboxFault("INTERNAL", f"The compiler could not be started in the box: {words}")
    failed = record.exit_code != 0 or not product
    return Compiled(
        product=b"" if failed else product,
        failed=failed,
        exit_code=record.exit_code,
        output=output,
        cpu_s=record.cpu_s,
        wall_s=record.wall_s,
    )


def _failure(compiled: Compiled) -> RunRecord:
    return RunRecord(
        end=EndKind.COMPILE_ERROR,
        exit_code=compiled.exit_code,
        stderr=compiled.output,
        cpu_s=compiled.cpu_s,
        wall_s=compiled.wall_s,
        detail="" if compiled.exit_code else "the compiler made nothing that can be run",
    )


def _joined(first: CapturedOutput, second: CapturedOutput) -> CapturedOutput:
    return CapturedOutput(first.data + second.data, first.total_bytes + second.total_bytes)


def _heap(limits: RunLimits) -> dict[str, str]:
    heap_mib = int(limits.memory_bytes * _HEAP_SHARE) // MIB
    return {"heap_mib": str(max(_LEAST_HEAP_MIB, heap_mib))}


def _environment(language: Language, values: Values) -> dict[str, str]:
    return {name: fill_text(value, values) for name, value in language.environment.items()}


def _key(chain: Toolchain, request: RunRequest) -> str:
    """The hash of everything that goes into a compilation but its time limit."""
    digest = hashlib.sha256()
    limits = request.limits
    facts = [
        chain.language,
        chain.fingerprint,
        list(request.argv),
        sorted(request.environment.items()),
        [limits.memory_bytes, limits.disk_bytes, limits.processes, limits.output_bytes],
        [(file.path, file.mode, len(file.content)) for file in request.files],
    ]
    digest.update(json.dumps(facts).encode())
    for file in request.files:
        digest.update(file.content)
    return digest.hexdigest()
