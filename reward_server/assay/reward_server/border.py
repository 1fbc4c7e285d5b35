"""The fault boundary of verifiers: a sound judgement or a fault comes out.

Inline verifiers pass it in the server's process, the others in their worker. A worker handles model
text, so the server runs `checked` once more on its answers.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import traceback
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TypeVar

from assay.reward_server import functions, signatures
from assay.reward_server.domain import (
    MAX_EXPLANATION_CHARS,
    VERIFIER_FAILED,
    Fault,
    Judgement,
    Outcome,
    RemoteOutcome,
    RemoteVerifier,
    Unjudgeable,
    Verifier,
    VerifierItem,
    VerifierSpec,
)

Stage = TypeVar("Stage")

_log = logging.getLogger(__name__)
_ROUNDING = 1e-9
_MAX_TEXT_CHARS = 16_000
_MAX_BYTES = 72_000
_MAX_FACT_CHARS = 2_000
_MAX_OFFSET = 2**31 - 1
_ADAPTERS = {functions.__file__, signatures.__file__}
_NOT_UNICODE = "gave a name that is not Unicode text"
_REASON = re.compile(r"[A-Z][A-Z0-9_]{0,62}")


def judge(verifier: Verifier, item: VerifierItem) -> Outcome:
    """Judges an item; every exception becomes a fault."""
    spec = verifier.spec
    try:
        return checked(spec, verifier.judge(item))
    except Unjudgeable as trouble:
        return checked(spec, Fault(trouble.reason, trouble.message, {"verifier": spec.name}))
    except Exception as error:  # noqa: BLE001 - the border
        # The border: a defect of one verifier must cost its own item only. The text of the
        # exception may hold the candidate's, so it stays in the log.
        _log.exception("verifier %s failed", spec.name)
        return failed(spec, _raised(error))


def glance(verifier: Verifier, item: VerifierItem) -> Outcome | None:
    """Judges an item here if its verifier can; None when a worker has to."""
    spec = verifier.spec
    try:
        judgement = verifier.glance(item)
    except Unjudgeable as trouble:
        return checked(spec, Fault(trouble.reason, trouble.message, {"verifier": spec.name}))
    except Exception:  # noqa: BLE001 - the border
        # A worker tries again by the longer road, and what fails there is a fault.
        _log.exception("verifier %s failed to judge at a glance", spec.name)
        return None
    return None if judgement is None else checked(spec, judgement)


def step(
    spec: VerifierSpec,
    steps: Generator[Stage, tuple[Outcome, ...], Outcome],
    outcomes: tuple[Outcome, ...] | None,
) -> tuple[Stage | None, Outcome | None]:
    """Takes a composite one stage further; every exception becomes a fault.

    Args:
        spec: the composite's.
        steps: the composite at work.
        outcomes: of the stage before; None for the first.

    Returns:
        The next stage and None, or None and the outcome.
    """
    try:
        return (next(steps) if outcomes is None else steps.send(outcomes)), None
    except StopIteration as end:
        return None, checked(spec, end.value)
    except Unjudgeable as trouble:
        return None, checked(spec, Fault(trouble.reason, trouble.message, {"verifier": spec.name}))
    except Exception as error:  # noqa: BLE001 - the border
        _log.exception("verifier %s failed", spec.name)
        return None, failed(spec, _raised(error))


async def judge_all(
    verifier: RemoteVerifier, items: Sequence[VerifierItem], timeout_s: float
) -> list[RemoteOutcome]:
    """Has another service judge items; every exception becomes their fault."""
    spec = verifier.spec
    try:
        found = await verifier.judge_all(items, timeout_s)
    except Exception as error:  # noqa: BLE001 - the border
        _log.exception("verifier %s failed", spec.name)
        return [RemoteOutcome(failed(spec, _raised(error)))] * len(items)
    if len(found) != len(items):
        return [RemoteOutcome(failed(spec, "lost count of its items"))] * len(items)
    return [dataclasses.replace(one, outcome=checked(spec, one.outcome)) for one in found]


def _raised(error: Exception) -> str:
    """The exception's type, and the last line of the verifier's own file on the way to it."""
    frames = [
        (frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)
    ]
    frames = [frame for frame in frames[1:] if frame[0] not in _ADAPTERS]
    own = [(file, line) for file, line in frames if file == frames[0][0]]
    place = f" at {Path(own[-1][0]).name}:{own[-1][1]}" if own else ""
    return f"raised {type(error).__name__}{place}; the server's log has the traceback"


def checked(spec: VerifierSpec, outcome: Outcome) -> Outcome:
    """The outcome, tidied, or the fault VERIFIER_FAILED if it breaks the contract."""
    if isinstance(outcome, Fault):
        if not _REASON.fullmatch(outcome.reason):
            return failed(spec, "gave a reason that is none")
        facts = {one_line(key): _fact(value) for key, value in outcome.metadata.items()}
        return Fault(outcome.reason, one_line(outcome.message), facts)
    given: object = outcome  # whatever its annotation promises
    if not isinstance(given, Judgement):
        return failed(spec, f"returned a {type(given).__name__}, not a Judgement")
    trouble = (
        _trouble_with_size(outcome)
        or _trouble_with_reward(spec, outcome)
        or _trouble(spec, outcome)
    )
    if trouble:
        return failed(spec, trouble)
    answer = outcome.extracted_answer
    tidy_answer = None if answer is None else _encodable(answer)
    explanation = one_line(outcome.explanation)
    if tidy_answer is answer and explanation is outcome.explanation:
        return outcome
    return dataclasses.replace(outcome, extracted_answer=tidy_answer, explanation=explanation)


def failed(spec: VerifierSpec, what: str) -> Fault:
    """The fault of a verifier that broke its contract."""
    return Fault(
        VERIFIER_FAILED, one_line(f"verifier {spec.name!r} {what}"), {"verifier": spec.name}
    )


def one_line(text: str) -> str:
    """The text on one line of at most 1,000 characters, encodable as UTF-8."""
    if len(text) <= MAX_EXPLANATION_CHARS and text.isascii() and text.isprintable():
        return text
    line = " ".join(text[: 4 * MAX_EXPLANATION_CHARS].split())
    return _encodable(line)[:MAX_EXPLANATION_CHARS]


def _fact(text: str) -> str:
    return _encodable(text[:_MAX_FACT_CHARS])


def _trouble_with_size(judgement: Judgement) -> str | None:
    """Keeps a batch of the largest judgements within one message."""
    chars = len(judgement.extracted_answer or "")
    for part in judgement.components:
        chars += len(part.name)
        if not part.name.isascii() and part.name != _encodable(part.name):
            return _NOT_UNICODE
    for text in [*(span.label for span in judgement.spans), *judgement.suspicions]:
        chars += len(text)
        if text != _encodable(text):
            return _NOT_UNICODE
    numbers = 2 * len(judgement.components) + 4 * len(judgement.spans)
    if chars > _MAX_TEXT_CHARS or 4 * chars + 8 * numbers > _MAX_BYTES:
        return "gave a judgement that is too large"
    return None


def _trouble_with_reward(spec: VerifierSpec, judgement: Judgement) -> str | None:
    reward = judgement.reward
    if not spec.min_reward - _ROUNDING <= reward <= spec.max_reward + _ROUNDING:
        return f"gave the reward {reward:g}, outside its stated range"
    return None


def _trouble(spec: VerifierSpec, judgement: Judgement) -> str | None:
    if judgement.verdict not in spec.verdicts:
        return f"gave the verdict {judgement.verdict[:80]!r}, which it does not state"
    if not judgement.components:
        return "gave a judgement without components"
    if judgement.appeal is not None and not spec.is_profile:
        return "gave an appeal, which is for profiles"
    before = (0, 0)
    for span in judgement.spans:
        starts, ends = (span.turn_index, span.start), (span.turn_index, span.end)
        if not before <= starts <= ends or max(span.turn_index, span.end) > _MAX_OFFSET:
            return "gave spans that overlap or are out of order"
        before = ends
    return None


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
