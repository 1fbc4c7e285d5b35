"""Each language proves itself before it is offered: its own small program must answer rightly.

It takes a candidate's way, compilation and box and all, but for the cache. A language of suites
shows both: a suite that passes, and one that fails.
"""

from __future__ import annotations

from assay.sandbox.box import Boxes, Pump
from assay.sandbox.domain import CapturedOutput, EndKind, RunRecord, SandboxFault, SubmittedProgram
from assay.sandbox.languages.language import Language
from assay.sandbox.languages.preparer import LanguagePreparer
from assay.sandbox.languages.toolchains import MissingLanguage, Toolchains
from assay.sandbox.prepared import CompileFailed

ANSWER = b"42"
_COMPILE_WALL_S = 120.0
_WALL_S = 30.0


def self_test(
    toolchains: Toolchains, name: str, boxes: Boxes, pump: Pump
) -> MissingLanguage | None:
    """Runs a language's program in the slot's box; None means that it works.

    Raises:
        SandboxFault: UNKNOWN_LANGUAGE, the language is not among the toolchains. Other faults of
            the
            box are returned as the reason.
    """
    language, _ = toolchains.get(name)
    preparer = LanguagePreparer(toolchains, None, boxes, pump)
    try:
        record = _run(language, language.self_test, preparer, boxes, pump)
        if not language.failing_suite:
            right = record.ok and record.stdout.data.strip() == ANSWER
        elif right := record.ok:
            record = _run(language, language.failing_suite, preparer, boxes, pump)
            right = record.end is EndKind.EXITED and record.exit_code != 0
    except CompileFailed as error:
        return MissingLanguage(
            language.name, f"Its self-test does not compile: {_ended(error.record)}."
        )
    except SandboxFault as error:
        return MissingLanguage(language.name, f"Its self-test could not run: {error.message}")
    if right:
        return None
    return MissingLanguage(language.name, f"Its self-test gave a wrong answer: {_ended(record)}.")


def _run(
    language: Language, source: str, preparer: LanguagePreparer, boxes: Boxes, pump: Pump
) -> RunRecord:
    limits = language.limits.with_(compile_wall_s=_COMPILE_WALL_S, wall_s=_WALL_S, cpu_s=_WALL_S)
    prepared = preparer.prepare(SubmittedProgram(language.name, source), limits)
    running = boxes.candidate().start(prepared.run(stdin=language.self_test_stdin, limits=limits))
    pump.add(running)
    return pump.finish(running)


def _ended(record: RunRecord) -> str:
    words = f"{record.end.value}, exit code {record.exit_code}, signal {record.signal}"
    return "; ".join(
        [words, *filter(None, (record.detail, _said(record.stdout), _said(record.stderr)))]
    )


def _said(output: CapturedOutput) -> str:
    text = " ".join(output.data.decode(errors="replace").split())
    return text[:300]
