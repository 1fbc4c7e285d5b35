"""Each language proves itself before it is offered: its own small program must answer rightly.

The way is the one that a candidate's program takes, compilation and box and all, but for the cache.
"""

from __future__ import annotations

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import Output, Program, RunRecord, SandboxFault
from assay.sandbox.languages.preparer import LanguagePreparer
from assay.sandbox.languages.toolchains import Missing, Toolchains
from assay.sandbox.prepared import CompileFailed

ANSWER = b"42"
_COMPILE_WALL_S = 120.0
_WALL_S = 30.0


def self_test(toolchains: Toolchains, name: str, boxes: Boxes, pump: Pump) -> Missing | None:
    """Runs a language's program in the slot's box; None means that it works.

    Raises:
        SandboxFault: UNKNOWN_LANGUAGE, the language is not among the toolchains. Other faults of
            the box are what the test is for, and are returned.
    """
    language, _ = toolchains.get(name)
    limits = language.limits.with_(compile_wall_s=_COMPILE_WALL_S, wall_s=_WALL_S, cpu_s=_WALL_S)
    try:
        preparer = LanguagePreparer(toolchains, None, boxes, pump)
        prepared = preparer.prepare(Program(language.name, language.self_test), limits)
        request = prepared.run(stdin=language.self_test_stdin, limits=limits)
        running = boxes.candidate().start(request)
        pump.add(running)
        record = pump.finish(running)
    except CompileFailed as error:
        return Missing(language.name, f"Its self-test does not compile: {_ended(error.record)}.")
    except SandboxFault as error:
        return Missing(language.name, f"Its self-test could not run: {error.message}")
    if record.ok and record.stdout.data.strip() == ANSWER:
        return None
    return Missing(language.name, f"Its self-test gave a wrong answer: {_ended(record)}.")


def _ended(record: RunRecord) -> str:
    words = f"{record.end.value}, exit code {record.exit_code}, signal {record.signal}"
    return "; ".join(
        [words, *filter(None, (record.detail, _said(record.stdout), _said(record.stderr)))]
    )


def _said(output: Output) -> str:
    text = " ".join(output.data.decode(errors="replace").split())
    return text[:300]
