"""Both readings of a verdict whose letters are drawn: each letter stands for either side once.

The value is the mean of the readings, and their distance the letter gap. What a judge gives to a
letter, to its place in the list, or to a letter that the candidate wrote falls out of the mean.
Both share all but their last lines, so an engine that keeps beginnings reads the rest once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from assay.genrm.domain import ChatMessage, ResolvedJudgeSettings, Run, TrajectoryTurn
from assay.genrm.judges.modes import invalid
from assay.genrm.judges.numbers import least
from assay.genrm.judges.together import together
from assay.genrm.judges.verdict import How, VerdictResult, verdict, vote_count
from assay.genrm.templates import Template
from assay.genrm.templates.letters import draw
from assay.genrm.templates.template import Slot
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason


def readings(template: Template, seed: int, slots: Mapping[str, Slot]) -> tuple[Template, ...]:
    """The template as it is asked: once, or with letters drawn for these slots, on both sides."""
    if not template.letters:
        return (template,)
    texts = (text for name in sorted(slots) for text in (name, *_texts(slots[name])))
    letters = draw(len(template.verdicts), seed, (template.ref, *texts))
    return template.drawn(letters), template.drawn(letters, turned=True)


def read_verdict(
    read_as: Sequence[Template],
    slots: Mapping[str, Slot],
    how: How,
    settings: ResolvedJudgeSettings,
    seed: int,
) -> Run[VerdictResult]:
    """Asks for one verdict by each reading, all at once, and gives their mean; as `verdict`.

    Votes are shared between the readings, at least one for each.

    Raises:
        Unjudgeable: as `verdict`, for either reading.
    """
    shares = [replace(settings, votes=votes) for votes in _shares(read_as, settings)]
    runs, first = [], seed
    for template, share in zip(read_as, shares, strict=True):
        runs.append(verdict(template.render(**slots), template, how, share, first))
        first += vote_count(share)
    made = yield from together(runs)
    return made[0] if len(made) == 1 else _mean(made, settings)


def seeds_taken(read_as: Sequence[Template], settings: ResolvedJudgeSettings) -> int:
    """How many seeds `read_verdict` counts up."""
    return sum(vote_count(replace(settings, votes=votes)) for votes in _shares(read_as, settings))


def require_bound(
    settings: ResolvedJudgeSettings, template: Template | None = None, how: How = "votes"
) -> None:
    """Refuses a bound on the letter gap where there will be none to hold against it.

    Raises:
        Unjudgeable: INVALID_PARAMETER.
    """
    if settings.max_letter_gap is None:
        return
    if template is None or not template.letters:
        name = template.ref if template else "this way of judging"
        raise invalid(f"{name} draws no letters; leave out max_letter_gap, or ask by one that does")
    sampled = how == "votes" or template.style == "reasoned" or settings.low_mass == "votes"
    if sampled and settings.temperature > 0:
        raise invalid(
            "votes that are sampled move by chance, and not only with the letters; leave out "
            "max_letter_gap, or ask for probabilities or a temperature of 0"
        )


def moved(gap: float | None, settings: ResolvedJudgeSettings) -> bool:
    """Whether the verdict moved with the letters by more than is allowed."""
    bound = settings.max_letter_gap
    return bound is not None and gap is not None and gap > bound


def require_unmoved(gap: float | None, settings: ResolvedJudgeSettings) -> None:
    """Refuses a verdict that moved with the letters by more than is allowed.

    Raises:
        Unjudgeable: LETTER_GAP, with the gap as metadata.
    """
    if moved(gap, settings):
        raise Unjudgeable(
            Reason.LETTER_GAP,
            f"the verdict moves by {gap:.3f} with the letters that stand for it, more than the "
            f"{settings.max_letter_gap:g} allowed: the judge goes by the letter",
            {"letter_gap": repr(gap)},
        )


def _shares(read_as: Sequence[Template], settings: ResolvedJudgeSettings) -> list[int]:
    count = len(read_as)
    return [max(1, (settings.votes + count - 1 - at) // count) for at in range(count)]


def _mean(made: Sequence[VerdictResult], settings: ResolvedJudgeSettings) -> VerdictResult:
    """Of two readings; the gap is None where votes were sampled, for chance is in it."""
    one, other = made
    error = None
    if one.standard_error is not None and other.standard_error is not None:
        error = math.hypot(one.standard_error, other.standard_error) / 2
    sampled = bool(one.votes or other.votes) and settings.temperature > 0
    return VerdictResult(
        (one.value + other.value) / 2,
        one.usage + other.usage,
        error,
        one.votes + other.votes,
        one.unparsed + other.unparsed,
        one.rationale or other.rationale,
        one.truncated or other.truncated,
        least((one.mass, other.mass)),
        None if sampled else abs(one.value - other.value),
    )


def _texts(slot: Slot) -> Iterator[str]:
    parts: Iterable[str | ChatMessage | TrajectoryTurn]
    parts = (slot,) if isinstance(slot, str) else slot or ()
    for part in parts:
        if isinstance(part, ChatMessage):
            yield part.role
            yield part.content
        elif isinstance(part, TrajectoryTurn):
            yield part.role
            yield from part.texts
        else:
            yield part
