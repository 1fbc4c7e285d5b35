"""One prompt, one verdict: by the probabilities of its options, or by sampled votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from assay.clients.judging.types import Usage, Vote
from assay.genrm.domain import (
    RATIONALE_CHARS,
    RAW_TEXT_CHARS,
    Reply,
    ResolvedJudgeSettings,
    Run,
)
from assay.genrm.engines.base import Answer, Choose, Chosen, Prompt, PromptPiece, Write, Written
from assay.genrm.engines.forms import TextForm, one_of
from assay.genrm.engines.options import verdict_mass
from assay.genrm.engines.thoughts import OUR_END
from assay.genrm.judges.numbers import (
    expected_value,
    joined,
    sample_error,
    vote_error,
)
from assay.genrm.judges.parsing import (
    ANSWER_BEGINS,
    ANSWER_ENDS,
    read_direct,
    read_reasoned,
    reasons,
    thought,
)
from assay.genrm.templates import Template
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

How = Literal["probability", "votes"]
_VERDICT_TOKENS = 16
A = TypeVar("A", bound=Answer)


@dataclass(frozen=True, slots=True)
class VerdictResult:
    """What a judge made of one prompt: `value` in [0, 1], the rest as in ModelJudgement.

    `mass` is the least share of the model's probability that the verdicts held; None where no
    probabilities were read. `letter_gap` is how far the verdict moved with the letters, in [0, 1];
    None where none were drawn, or chance moves it too.
    """

    value: float
    usage: Usage
    standard_error: float | None = None
    votes: tuple[Vote, ...] = ()
    unparsed: int = 0
    rationale: str = ""
    truncated: bool = False
    mass: float | None = None
    letter_gap: float | None = None


def verdict(
    prompt: Prompt, template: Template, how: How, settings: ResolvedJudgeSettings, seed: int
) -> Run[VerdictResult]:
    """Asks for one verdict; votes count up from `seed`.

    A direct template's options are read at once, or voted on. A reasoned one writes its reasons
    first; each set of reasons is a vote, whose value is what the judge wrote, or with "probability"
    the mean over its options right after its reasons.

    Probabilities are a verdict where the options hold at least the template's `least_mass` of them
    all. Below it the settings decide: no judgement, or votes. After reasons it is a vote that
    cannot be read.

    Raises:
        Unjudgeable: JUDGE_UNPARSED, fewer than half of the votes can be read; LOW_VERDICT_MASS;
            SCORE_NOT_FINITE.
    """
    if how == "votes" or template.style == "reasoned":
        return (yield from _voted(prompt, template, how, settings, seed))
    request = Choose(prompt, template.spellings, keep_ends(settings))
    chosen = expect(Chosen, (yield (request,)))[0]
    value, mass = read_options(chosen, template)
    if mass >= least_mass(template, settings):
        return VerdictResult(value, usage_of([chosen]), truncated=chosen.cut, mass=mass)
    if settings.low_mass == "refuse":
        raise _low_mass(mass, template, settings)
    # The model would say something else: a form would make it say a verdict all the same.
    free = replace(settings, forms="never")
    made = yield from _voted(prompt, template, "votes", free, seed)
    return replace(made, usage=usage_of([chosen]) + made.usage, mass=mass)


def read_options(chosen: Chosen, template: Template) -> tuple[float, float]:
    """The mean over the verdicts, each with its other spellings, and the share that they hold.

    Raises:
        Unjudgeable: SCORE_NOT_FINITE.
    """
    others = iter(chosen.logprobs[len(template.verdicts) :])
    logprobs = [
        joined([logprob, *(next(others) for _ in option.also)])
        for option, logprob in zip(template.verdicts, chosen.logprobs, strict=False)
    ]
    value = expected_value(logprobs, template.values)
    return value, verdict_mass(template.spellings, chosen.logprobs)


def least_mass(template: Template, settings: ResolvedJudgeSettings) -> float:
    """The floor that counts: the server's where it sets one, else the template's."""
    return template.least_mass if settings.least_mass is None else settings.least_mass


def _low_mass(mass: float, template: Template, settings: ResolvedJudgeSettings) -> Unjudgeable:
    floor = least_mass(template, settings)
    words = " or ".join(option.strip() for option in template.options)
    return Unjudgeable(
        Reason.LOW_VERDICT_MASS,
        f"the verdicts {words} hold {mass:.2g} of the model's probability, and {template.ref} "
        f"wants {floor:g}: the model would say something else; choose another model or template, "
        "or ask for votes",
        {"verdict_mass": repr(mass), "least_mass": repr(floor)},
    )


def keep_ends(settings: ResolvedJudgeSettings) -> bool:
    """Whether a prompt over the context is cut."""
    return settings.overflow == "keep-ends"


def vote_count(settings: ResolvedJudgeSettings) -> int:
    """How many votes are sampled: a single one at temperature 0."""
    return settings.votes if settings.temperature > 0 else 1


def vote_requests(
    prompt: Prompt,
    template: Template,
    settings: ResolvedJudgeSettings,
    seed: int,
    form: TextForm | None = None,
) -> tuple[Write, ...]:
    """One request for each vote, held to the form from the start where the settings say so."""
    return tuple(
        Write(
            prompt,
            settings.max_tokens or template.max_tokens,
            temperature=settings.temperature,
            seed=seed + index,
            stop=("\n",) if template.style == "direct" and template.options else (),
            keep_ends=keep_ends(settings),
            form=form if settings.forms == "always" else None,
        )
        for index in range(vote_count(settings))
    )


def ask_again(
    requests: Sequence[Write],
    written: Sequence[Written],
    unread: Sequence[int],
    form: TextForm | None,
    settings: ResolvedJudgeSettings,
) -> Run[tuple[list[Written], Usage]]:
    """The texts, those that cannot be read written again under the form, and what that took.

    Without a form, or where the settings hold texts to none or held these to it, they stay.
    """
    texts = list(written)
    if form is None or settings.forms != "again" or not unread:
        return texts, Usage()
    held = tuple(replace(requests[index], form=form, stop=()) for index in unread)
    answers = expect(Written, (yield held))
    for index, answer in zip(unread, answers, strict=True):
        texts[index] = answer
    return texts, usage_of(answers)


def says_enough(answer: Written, floor: float) -> bool:
    """Whether a text was free, or the verdicts of its form held the share that they must."""
    return answer.mass is None or answer.mass >= floor


def usage_of(answers: Sequence[Answer]) -> Usage:
    """Tokens, seconds and cost of all answers."""
    total = Usage()
    for answer in answers:
        tokens = answer.tokens
        total += Usage(
            tokens.prompt, tokens.cached, tokens.completion, tokens.engine_s, tokens.cost
        )
    return total


def expect(kind: type[A], answers: Sequence[Reply]) -> tuple[A, ...]:
    """The answers, checked to be of a kind."""
    for answer in answers:
        if not isinstance(answer, kind):
            raise TypeError(f"an engine answered {type(answer).__name__}, not {kind.__name__}")
    return tuple(answer for answer in answers if isinstance(answer, kind))


def require_half(parsed: int, texts: Sequence[str], unread: Sequence[str], form: str) -> None:
    """Refuses to judge where fewer than half of the texts could be read.

    `form` is what was expected.

    Raises:
        Unjudgeable: JUDGE_UNPARSED, with the first unread text as metadata "raw_text".
    """
    if parsed and 2 * parsed >= len(texts):
        return
    raise Unjudgeable(
        Reason.JUDGE_UNPARSED,
        f"{len(unread)} of the judge's {len(texts)} texts hold no verdict; expected {form}",
        {"raw_text": (unread or texts or ("",))[0][:RAW_TEXT_CHARS]},
    )


def _voted(
    prompt: Prompt, template: Template, how: How, settings: ResolvedJudgeSettings, seed: int
) -> Run[VerdictResult]:
    direct = template.style == "direct"
    form = _form_of(template) if direct and settings.forms != "never" else None
    requests = vote_requests(prompt, template, settings, seed, form)
    written: Sequence[Written] = expect(Written, (yield requests))
    usage = usage_of(written)
    mass = None
    if how == "probability":
        values, mass, more = yield from _values_after_reasons(prompt, template, settings, written)
    elif direct:
        floor = least_mass(template, settings)
        unread = [n for n, one in enumerate(written) if _read(one, template, floor) is None]
        written, more = yield from ask_again(requests, written, unread, form, settings)
        values = tuple(_read(one, template, floor) for one in written)
        mass = least_share(written)
    else:
        values, mass, more = yield from _written_values(prompt, template, settings, written)
    usage += more
    votes = tuple(
        Vote(value, answer.text[:RATIONALE_CHARS])
        for value, answer in zip(values, written, strict=True)
        if value is not None
    )
    texts = [answer.text for answer in written]
    lost = [text for text, value in zip(texts, values, strict=True) if value is None]
    require_half(len(votes), texts, lost, _form(template))
    counted = [vote.value for vote in votes]
    error = sample_error(counted) if how == "probability" else vote_error(counted)
    rationale = reasons(votes[0].text) if template.style == "reasoned" else ""
    truncated = any(answer.cut for answer in written)
    return VerdictResult(
        sum(counted) / len(counted), usage, error, votes, len(lost), rationale, truncated, mass
    )


def least_share(written: Sequence[Written]) -> float | None:
    """The least share of the texts that were held to a form."""
    return min((one.mass for one in written if one.mass is not None), default=None)


def _read(answer: Written, template: Template, floor: float) -> float | None:
    if not says_enough(answer, floor):
        return None
    return _value(_said(answer.text, template, template.prefill), template)


def _form_of(template: Template, end: str = "") -> TextForm | None:
    """One of the verdicts in any spelling, or where those begin with each other, as it stands."""
    return one_of(template.spellings, end=end) or one_of(template.options, end=end)


def _said(text: str, template: Template, prefill: str = "") -> int | None:
    """Index of the verdict that a text is, in any of its spellings."""
    index = read_direct(text, template.options, prefill)
    if index is not None:
        return index
    for number, option in enumerate(template.verdicts):
        if option.also and read_direct(text, option.also, prefill) is not None:
            return number
    return None


def _values_after_reasons(
    prompt: Prompt, template: Template, settings: ResolvedJudgeSettings, written: Sequence[Written]
) -> Run[tuple[tuple[float | None, ...], float | None, Usage]]:
    """The mean over the options after each set of reasons, and the least share that they held.

    Reasons that reach the limit of tokens are ended there. A mean is None where there is no
    thought, or the options hold too little.
    """
    thoughts = [_ended(answer) for answer in written]
    requests = tuple(
        Choose(_after(prompt, text), template.spellings, keep_ends(settings))
        for text in thoughts
        if text is not None
    )
    chosen = expect(Chosen, (yield requests)) if requests else ()
    floor = least_mass(template, settings)
    found = [read_options(answer, template) for answer in chosen]
    read = iter(value if mass >= floor else None for value, mass in found)
    values = tuple(None if text is None else next(read) for text in thoughts)
    return values, min((mass for _, mass in found), default=None), usage_of(chosen)


def _after(prompt: Prompt, text: str) -> Prompt:
    """The judge's answer up to its verdict.

    Its reasons are data, for they may quote the candidate; the end of its thought is ours.
    """
    reasons = (PromptPiece(text, trusted=False), PromptPiece(OUR_END))
    lead = (*prompt.lead, PromptPiece(prompt.prefill), *reasons)
    return replace(prompt, lead=lead, prefill=f"\n{ANSWER_BEGINS}")


def _written_values(
    prompt: Prompt, template: Template, settings: ResolvedJudgeSettings, written: Sequence[Written]
) -> Run[tuple[tuple[float | None, ...], float | None, Usage]]:
    """The votes' values, None for one that cannot be read, and the least share of asked ones.

    Reasons that reach the limit of tokens are ended there, and the judge is asked for its verdict:
    what was cut short may end in a quotation. Where it can be held to a form, it is asked for every
    verdict that cannot be read.
    """
    said = [
        read_reasoned(one.text, template.options) if one.finish == "stop" else None
        for one in written
    ]
    end = ANSWER_ENDS
    form = _form_of(template, end) if settings.forms != "never" else None
    late = [
        index
        for index, one in enumerate(written)
        if said[index] is None and (form or one.finish == "length")
    ]
    # A token is a byte or more, so that any option fits.
    room = max(len(option.encode()) for option in template.spellings) + len(end) if form else 0
    asked = tuple(
        Write(
            _after(prompt, _ended(written[index]) or f"{written[index].text.rstrip()}\n"),
            max(_VERDICT_TOKENS, room),
            stop=() if form else (end,),
            keep_ends=keep_ends(settings),
            form=form,
        )
        for index in late
    )
    answers = expect(Written, (yield asked)) if asked else ()
    floor = least_mass(template, settings)
    for index, answer in zip(late, answers, strict=True):
        if says_enough(answer, floor):
            said[index] = _said(answer.text.removesuffix(end), template)
    values = tuple(_value(index, template) for index in said)
    return values, least_share(answers), usage_of(answers)


def _ended(answer: Written) -> str | None:
    """The thought, which ends where the tokens ran out in it; None where it does not end."""
    ended = thought(answer.text)
    if ended is None and answer.finish == "length":
        return f"{answer.text.rstrip()}\n"
    return ended


def _value(index: int | None, template: Template) -> float | None:
    return None if index is None else template.values[index]


def _form(template: Template) -> str:
    options = " or ".join(option.strip() for option in template.options)
    if template.style == "reasoned":
        return f"reasons, </think>, then <answer>OPTION</answer> and no more; options: {options}"
    return f"one of: {options}"
