r"""`grade(response, reference)`: grading without a server.

>>> grade(r"So it is $\boxed{\frac{1}{2}}$.", "0.5").reward
1.0

The quick tiers run where they are called; an answer that they cannot decide goes to a worker
process that is killed when its time is over (`pool`), or is incorrect with `slow_tier=False`. Never
raises for what a response or a reference holds: that is a `Fault`, a value. What a program got
wrong, such as an unknown mode, is a ValueError.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from assay.math import extraction
from assay.math.compare import Equivalence
from assay.math.extraction import FoundAnswer
from assay.math.judging import UNDONE_WORK_CHOICES, Ask, Rules, judged
from assay.math.outcomes import (
    MISSING_REFERENCE,
    UNSUPPORTED_INPUT,
    VERIFIER_FAILED,
    WORKER_DIED,
    AskFailedError,
    Fault,
    Outcome,
)
from assay.math.policy import Policy
from assay.math.reading import DEFAULT, Reading

if TYPE_CHECKING:
    from assay.math.pool import Pool

_DEFAULT_RULES = Rules()
TIMEOUT_S = 5.0
"""What a response may take, in seconds, unless the caller says another time."""


def grade(
    response: str,
    reference: str | Sequence[str],
    *,
    extract: str = "auto",
    policy: Policy = DEFAULT,
    prompt: str | None = None,
    undone_work: str = "auto",
    truncated: bool = False,
    slow_tier: bool = True,
    timeout_s: float = TIMEOUT_S,
) -> Outcome:
    r"""Judges the final answer of a response.

    Args:
        response: the model's text, of any length and content.
        reference: the right answer, or several of which any will do: an answer, one in delimiters
            or a box, or a whole GSM8K solution that ends in `#### 42`.
        extract: where the answer is read: `auto` tries the marks (`\boxed`, `<answer>`, `####`,
            "the answer is"), then the last formula and number; `strict` takes marked answers only;
            every other of `extraction.MODES` is one rule alone.
        policy: what counts as the same answer.
        prompt: what was asked, where that is known: under "for x > 0" `|x|` is x, "in any base"
            lets bases differ, and `x^2 = 5` answers 5 where x^2 is asked for.
        undone_work: whether a computation that is left to do, such as 4 * 7 for 28, is right:
            `reject`, `accept`, or `auto`, which rejects it where the prompt is known and else
            whole numbers under + - * / only.
        truncated: the response was cut at the generation limit: an unmarked answer does not count.
        slow_tier: whether sympy is asked, in a worker process, where the quick tiers cannot decide;
            without it such an answer is incorrect and no process is started.
        timeout_s: seconds until there is an outcome, the start of the worker and the wait for one
            that other threads use included. The quick tiers are bounded by counts and take
            milliseconds.

    Returns:
        A judgement, or a fault where there is none.

    Raises:
        ValueError: an option has no such value.
    """
    rules = _rules(extract, undone_work, slow_tier, policy)
    asks = asking(timeout_s)
    outcome = _graded(response, reference, rules, asks, truncated=truncated, prompt=prompt)
    assert outcome is not None  # noqa: S101 - there is somebody to ask
    return outcome


def grade_batch(
    responses: Iterable[str],
    references: Iterable[str | Sequence[str]],
    *,
    extract: str = "auto",
    policy: Policy = DEFAULT,
    prompts: Iterable[str | None] | None = None,
    undone_work: str = "auto",
    truncated: Iterable[bool] | None = None,
    slow_tier: bool = True,
    timeout_s: float = TIMEOUT_S,
    workers: int = 1,
) -> list[Outcome]:
    """Judges responses, each against its own reference; the options are those of `grade`.

    Args:
        responses: the model's texts.
        references: of each response, in the same order.
        extract: as for `grade`.
        policy: as for `grade`.
        prompts: of each response; None for none of them.
        undone_work: as for `grade`.
        truncated: of each response; None for none of them.
        slow_tier: as for `grade`.
        timeout_s: seconds for each response that a worker is asked about, from when its turn comes.
        workers: processes for what the quick tiers leave open, at most so many at once.

    Returns:
        The outcomes, in order.

    Raises:
        ValueError: an option has no such value, or there are not as many of one as of the other.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; at least one is needed")
    rules = _rules(extract, undone_work, slow_tier, policy)
    said, known = list(responses), list(references)
    cut = [False] * len(said) if truncated is None else list(truncated)
    asked_for = [None] * len(said) if prompts is None else list(prompts)
    if not len(said) == len(known) == len(cut) == len(asked_for):
        raise ValueError(
            f"{len(said)} responses, {len(known)} references, {len(cut)} values of truncated and "
            f"{len(asked_for)} prompts: as many of each are needed"
        )
    _checked_time(timeout_s)
    rows = list(zip(said, known, cut, asked_for, strict=True))
    outcomes = [_graded(a, b, rules, None, truncated=c, prompt=d) for a, b, c, d in rows]

    def asked(index: int) -> Outcome | None:
        response, reference, is_cut, prompt = rows[index]
        asks = asking(timeout_s)
        return _graded(response, reference, rules, asks, truncated=is_cut, prompt=prompt)

    left = [index for index, outcome in enumerate(outcomes) if outcome is None]
    if workers > 1 and len(left) > 1:
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - few batches need it

        _pool().allow(workers)
        with ThreadPoolExecutor(workers, "assay-math") as threads:
            answers = list(threads.map(asked, left))
    else:
        answers = [asked(index) for index in left]
    for index, answer in zip(left, answers, strict=True):
        outcomes[index] = answer
    return [outcome for outcome in outcomes if outcome is not None]


def extract(response: str, mode: str = "auto") -> FoundAnswer | None:
    """The final answer of a response, unread: its text, the rule that found it, and its place.

    Args:
        response: the model's text, of any length and content.
        mode: one of `extraction.MODES`; see `grade`.

    Raises:
        ValueError: there is no such mode.
    """
    return extraction.find_answer(response, mode)


def prepare(timeout_s: float = 60.0) -> None:
    """Starts the worker now, a second's work, which else the first answer that needs it pays for.

    Raises:
        AskFailedError: it cannot be started; the exception's `fault` says why.
    """
    _checked_time(timeout_s)
    _pool().prepare(timeout_s)


def _rules(extract: str, undone_work: str, slow_tier: bool, policy: Policy) -> Rules:
    """The rules of these options; those of most calls without a look at the policy's fields."""
    if extract == undone_work == "auto" and slow_tier and policy is DEFAULT:
        return _DEFAULT_RULES
    return _other_rules(extract, undone_work, slow_tier, policy)


@lru_cache(maxsize=256)
def _other_rules(extract: str, undone_work: str, slow_tier: bool, policy: Policy) -> Rules:
    """The rules of these options, one object for each, because readings are kept by it."""
    if extract not in extraction.MODES:
        raise ValueError(f"extract is {extract!r}; it can be {', '.join(extraction.MODES)}")
    if undone_work not in UNDONE_WORK_CHOICES:
        raise ValueError(f"undone_work is {undone_work!r}; it can be {UNDONE_WORK_CHOICES}")
    return Rules(extract, undone_work, slow_tier, policy=policy)


def _checked_time(timeout_s: float) -> float:
    if not 0 < timeout_s < math.inf:
        raise ValueError(f"timeout_s is {timeout_s}; it takes seconds, more than 0")
    return timeout_s


def asking(timeout_s: float) -> Ask:
    """Who asks the pool, until so many seconds from now."""
    deadline_s = time.monotonic() + _checked_time(timeout_s)

    def ask(reference: Reading, answer: Reading, policy: Policy) -> Equivalence:
        return _pool().compare(reference, answer, policy, deadline_s)

    return ask


def _pool() -> Pool:
    """The pool of this process; loaded when it is first needed.

    Raises:
        AskFailedError: WORKER_DIED on a system that has no such processes.
    """
    if os.name != "posix":
        raise AskFailedError(
            WORKER_DIED, "the symbolic tier's workers need Linux or macOS; pass slow_tier=False"
        )
    from assay.math import pool  # noqa: PLC0415 - most answers need no process

    return pool.POOL


def _graded(
    response: str,
    reference: str | Sequence[str],
    rules: Rules,
    ask: Ask | None,
    *,
    truncated: bool,
    prompt: str | None,
) -> Outcome | None:
    """The outcome of one response; None where there is nobody to ask and that is needed."""
    references = (reference,) if isinstance(reference, str) else reference
    trouble = _trouble(response, references, prompt)
    if trouble is not None:
        return trouble
    try:
        return judged(response, references, rules, ask, truncated=truncated, prompt=prompt)
    except AskFailedError as failure:
        return failure.fault
    except Exception as error:  # noqa: BLE001 - the border around a verifier
        # A defect of ours must cost one response, not a training.
        return _failed(error)


def _trouble(response: object, references: object, prompt: object = None) -> Fault | None:
    """What is wrong with the types of a row, which data of a training may well have wrong."""
    if not isinstance(response, str):
        return Fault(UNSUPPORTED_INPUT, f"a response is a text, not {_kind(response)}")
    if prompt is not None and not isinstance(prompt, str):
        return Fault(UNSUPPORTED_INPUT, f"a prompt is a text, not {_kind(prompt)}")
    if references is None or (isinstance(references, list | tuple) and not references):
        return Fault(MISSING_REFERENCE, "there is no reference")
    if not isinstance(references, list | tuple):
        return Fault(
            UNSUPPORTED_INPUT,
            f"a reference is a text or a list of texts, not {_kind(references)}; write numbers as "
            "texts",
        )
    for one in references:
        if not isinstance(one, str):
            return Fault(
                UNSUPPORTED_INPUT,
                f"a reference is a text, not {_kind(one)}; write numbers as texts",
            )
    return None


def _kind(value: object) -> str:
    return f"a value of type {type(value).__name__}"


def _failed(error: Exception) -> Fault:
    """What was raised, and where; its text may hold the response's and stays out."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = (
        f" at {last.tb_frame.f_code.co_filename.rpartition('/')[2]}:{last.tb_lineno}"
        if last
        else ""
    )
    return Fault(VERIFIER_FAILED, f"assay.math raised {type(error).__name__}{place}; report it")
