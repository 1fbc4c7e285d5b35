"""`plan-execute`: whether a response plans first, and does what it planned, step by step.

**How.** The response has one `<plan>` and behind it one `<execution>` (both names are parameters).
The steps of each are its numbered lines or bullets. A step of the execution fits the one of the
plan of whose words it holds the most, at least the share `similarity`, and adds at least
`new_words` words of its own. The reward is 2 m / (planned + executed) for the m pairs that fit in
the order of both: a step that is left out, done out of order, or done and never planned costs.

Empty or repeated steps, fewer than `least_steps`, another structure, and text between or before the
sections are `malformed`, 0. Text behind the execution (the answer) is free.

**What a policy could game.** It says whether the plan was followed, never whether it was good or
the answer right: multiply it with a verifier of the answer (the profile `e2c`). An execution step
that fits more than two steps of the plan equally, or both of two, fits none, so that words of the
whole plan in each step gain nothing. A plan of `least_steps` vague steps is easy to follow.

**Known limits.** Words, no synonyms. 20,000 characters a section, 64 steps.

**Source.** E2C, of which the abstract alone was read: a correct answer times adherence to the plan;
the measure of adherence is ours.

**Measured.** Not yet on responses of a model, because none with labels are at hand; laws in
`tests/unit/test_verifier_reasoning.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from assay.reward_server import (
    INVALID_PARAMETER,
    Component,
    Judgement,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers.text.parts import flagged
from assay.verifiers_extra.reasoning.steps import (
    MAX_CHARS,
    MAX_STEPS,
    content_words,
    in_order,
    section,
    steps_of,
)

_MOST_FITS = 2
_TAG = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_GLANCE_CHARS = 4_000


@verifier(
    "plan-execute",
    tasks=("plan-execute", "e2c"),
    verdicts=("followed", "partly-followed", "not-followed", "malformed"),
    needs_reference=False,
    glance=_GLANCE_CHARS,
)
def plan_execute(
    item: VerifierItem,
    *,
    plan: Annotated[str, "The tag of the plan."] = "plan",
    execution: Annotated[str, "The tag of the execution."] = "execution",
    similarity: Annotated[
        float, Range(0.1, 1.0), "The share of a planned step's words that its execution holds."
    ] = 0.5,
    least_steps: Annotated[int, Range(1, MAX_STEPS), "Fewer planned steps are no plan."] = 2,
    new_words: Annotated[
        int, Range(0, 100), "Words that an executed step adds to the planned one, at least."
    ] = 2,
) -> Judgement:
    """The response plans, and executes every step of its plan, in order, and no other.

    Raises:
        Unjudgeable: INVALID_PARAMETER for tags that are none, or equal.
    """
    for tag in (plan, execution):
        if not _TAG.fullmatch(tag) or plan == execution:
            raise Unjudgeable(
                INVALID_PARAMETER, "'plan' and 'execution' must be two names of tags, as 'plan'"
            )
    read = _read(item.response(), plan, execution, least_steps)
    if isinstance(read, str):
        return flagged(item, _judgement("malformed", 0.0, read))
    planned, executed = read
    wanted = [frozenset(content_words(step)) for step in planned]
    done = [content_words(step) for step in executed]
    fits = [_fits(wanted, set(words), similarity, new_words) for words in done]
    matched = in_order(fits, range(len(wanted)), lambda places, place: place in places)
    reward = 2 * matched / (len(planned) + len(executed))
    verdict = "followed" if reward >= 1.0 else "partly-followed" if matched else "not-followed"
    why = f"{matched} of {len(planned)} planned steps are executed in order, in {len(executed)}"
    return flagged(item, _judgement(verdict, reward, why, len(planned), len(executed)))


def _judgement(
    verdict: str, reward: float, why: str, planned: int = 0, executed: int = 0
) -> Judgement:
    parts = (
        Component("adherence", reward),
        Component("planned", float(planned), 0.0),
        Component("executed", float(executed), 0.0),
    )
    return Judgement.composed(verdict, parts, explanation=why)


def _read(text: str, plan: str, execution: str, least: int) -> tuple[list[str], list[str]] | str:
    """The steps of both sections, or what is wrong with the structure."""
    first, second = section(text, plan), section(text, execution)
    if first is None or second is None:
        return f"there must be one <{plan}> and one <{execution}>, each closed once"
    if first[2] > second[1] or text[: first[1]].strip() or text[first[2] : second[1]].strip():
        return f"<{plan}> comes first and <{execution}> right behind it"
    if max(len(first[0]), len(second[0])) > MAX_CHARS:
        return f"a section has more than {MAX_CHARS:,} characters"
    planned, executed = steps_of(first[0]), steps_of(second[0])
    if len(planned) < least or max(len(planned), len(executed)) > MAX_STEPS:
        return f"the plan has {len(planned)} steps and the execution {len(executed)}; {least} to 64"
    said = [" ".join(content_words(step)) for step in planned]
    if not all(said) or len(set(said)) < len(said):
        return "a step of the plan is empty or repeated"
    return planned, executed


def _fits(wanted: Sequence[frozenset[str]], said: set[str], share: float, new: int) -> set[int]:
    """The places of the planned steps that an executed step fits best; none where it fits many."""
    shares = [len(said & words) / len(words) for words in wanted]
    best = max(shares)
    if best < share:
        return set()
    places = {place for place, value in enumerate(shares) if value == best}
    if len(places) > min(_MOST_FITS, max(1, len(wanted) - 1)):
        return set()
    return {place for place in places if len(said - wanted[place]) >= new}
