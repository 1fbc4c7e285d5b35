"""Consensus: several critiques with a verdict on each step, and what most of them say (SPARK).

SPARK makes labels of critiques that agree, or that a critique of them refined; here their majority
is the judgement:

1. The score is the least share of critiques that call a step, or the whole, right: above 0.5
   exactly where the majority of each step, and of the closing verdicts, says "correct".
2. A vote that cannot be read counts for nothing, before and after it is refined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from assay.clients.judging.types import JudgeRef, ModelJudgement, Usage, Vote
from assay.genrm.domain import (
    RATIONALE_CHARS,
    CandidateResponse,
    ChatMessage,
    ResolvedJudgeSettings,
    Run,
)
from assay.genrm.engines.base import Write, Written
from assay.genrm.engines.forms import TextForm, critique_form
from assay.genrm.judges.critique import FORM, Critique, majority, parse_critique
from assay.genrm.judges.modes import invalid, one_text
from assay.genrm.judges.numbers import vote_error
from assay.genrm.judges.verdict import (
    ask_again,
    expect,
    least_mass,
    least_share,
    require_half,
    says_enough,
    usage_of,
    vote_requests,
)
from assay.genrm.templates import Template, Templates

MAX_STEPS = 64
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")


def judge_by_consensus(
    item: CandidateResponse, settings: ResolvedJudgeSettings, templates: Templates
) -> Run[ModelJudgement]:
    """Judges a response by the majority of its critiques.

    Raises:
        Unjudgeable: INVALID_PARAMETER, there is an anchor or a rubric; UNKNOWN_TEMPLATE;
            JUDGE_UNPARSED, fewer than half of the critiques can be read.
    """
    if item.anchor is not None or item.rubric is not None:
        raise invalid("consensus judges the steps of a response; leave out anchor and rubric")
    template = templates.get(settings.template, "critique", "critique")
    steps = cut(one_text(item.response, "consensus"))
    critiques, written, usage = yield from critiques_of(
        item.prompt,
        steps,
        item.ground_truth,
        settings=settings,
        template=template,
        templates=templates,
    )
    counted = [critique for critique in critiques if critique is not None]
    agreed = majority(counted)
    speaker = next((one for one in counted if one.final == agreed.final), counted[0])
    weakest = min(
        (
            [one.final for one in counted],
            *([one.steps[index] for one in counted] for index in range(len(steps))),
        ),
        key=sum,
    )
    return ModelJudgement(
        agreed.share,
        vote_error([float(value) for value in weakest]),
        tuple(Vote(float(one.final), one.text[:RATIONALE_CHARS]) for one in counted),
        len(critiques) - len(counted),
        speaker.text[:RATIONALE_CHARS],
        any(answer.cut for answer in written),
        JudgeRef(template=template.ref),
        usage,
        verdict_mass=least_share(written),
    )


def critiques_of(
    prompt: tuple[ChatMessage, ...],
    steps: Sequence[str],
    ground_truth: str | None,
    *,
    settings: ResolvedJudgeSettings,
    template: Template,
    templates: Templates,
) -> Run[tuple[tuple[Critique | None, ...], tuple[Written, ...], Usage]]:
    """Samples critiques of a response in steps, each refined where the settings say so.

    Of the settings all count but template, scoring and low_mass;
    `templates` has the meta-critique's.

    Returns:
        One critique for each vote, None where it cannot be read; the last text of each; all tokens.

    Raises:
        Unjudgeable: JUDGE_UNPARSED, fewer than half can be read.
    """
    rendered = template.render(question=prompt, steps=tuple(steps), ground_truth=ground_truth)
    count = len(steps)
    form = critique_form(count) if settings.forms != "never" and count <= MAX_STEPS else None
    requests = vote_requests(rendered, template, settings, settings.seed, form)
    written, usage = yield from _written(requests, count, template, settings, form)
    texts = [answer.text for answer in written]
    critiques = [_read(answer, count, least_mass(template, settings)) for answer in written]
    if settings.meta_critique and any(critiques):
        again = templates.get("", "meta-critique", "meta-critique")
        kept = [index for index, critique in enumerate(critiques) if critique is not None]
        asked = []
        for index in kept:
            refining = again.render(
                question=prompt,
                steps=tuple(steps),
                ground_truth=ground_truth,
                critique=texts[index],
            )
            seed = settings.seed + len(requests) + index
            asked.append(vote_requests(refining, again, settings, seed, form)[0])
        refined, more = yield from _written(tuple(asked), count, again, settings, form)
        usage += more
        for index, answer in zip(kept, refined, strict=True):
            texts[index] = answer.text
            critiques[index] = _read(answer, count, least_mass(again, settings))
        written += refined
    unread = [text for text, one in zip(texts, critiques, strict=True) if one is None]
    require_half(len(texts) - len(unread), texts, unread, FORM)
    return tuple(critiques), written, usage


def _written(
    requests: tuple[Write, ...],
    step_count: int,
    template: Template,
    settings: ResolvedJudgeSettings,
    form: TextForm | None,
) -> Run[tuple[tuple[Written, ...], Usage]]:
    """The critiques' texts, those that cannot be read written again under the form."""
    written = expect(Written, (yield requests))
    floor = least_mass(template, settings)
    unread = [n for n, one in enumerate(written) if _read(one, step_count, floor) is None]
    texts, more = yield from ask_again(requests, written, unread, form, settings)
    return tuple(texts), usage_of(written) + more


def _read(answer: Written, step_count: int, floor: float) -> Critique | None:
    """None for a critique that was cut short, for it may end in a quotation, or says too little."""
    if answer.finish != "stop" or not says_enough(answer, floor):
        return None
    return parse_critique(answer.text, step_count)


def cut(response: str) -> tuple[str, ...]:
    """The paragraphs of a response, or its lines where it is one paragraph.

    At most 64: the last takes the rest.
    """
    parts = _PARAGRAPH.split(response)
    separator = "\n\n"
    if len([part for part in parts if part.strip()]) < 2:
        parts, separator = response.split("\n"), "\n"
    parts = [part for part in parts if part.strip()]
    if len(parts) > MAX_STEPS:
        parts = [*parts[: MAX_STEPS - 1], separator.join(parts[MAX_STEPS - 1 :])]
    return tuple(parts)
