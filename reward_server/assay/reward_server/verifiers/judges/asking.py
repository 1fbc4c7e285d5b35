"""What judges that are models share: parameters, references, and how genrm is asked.

Items of a call with equal settings go to genrm together, so that candidates of one prompt share its
beginning there. What genrm could not judge is the item's fault, with genrm's own reason and facts.
What a candidate does to itself is its verdict. A blank response gets the verdict `unparsed` and the
least reward, and no model is asked. One that is longer than the model's context is read at its ends
and judged so, which the explanation says; or it gets the verdict `overlong` and the least reward,
or a fault, as the parameter `overflow` has it. Where the prompt, the reference or the anchor is the
longest text, the length is not the candidate's doing, and `overlong` is no verdict.

None of them is cached: the cache's key knows the verifier's version and the item, while the weights
behind a model's name may change while the server runs, and letters are drawn anew for each call.

Not covered: an item's own time-out; the call's deadline counts.
"""

from __future__ import annotations

import asyncio
import dataclasses
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Generic, Literal, Protocol, TypeVar, cast

from assay.clients.judging import (
    AsyncJudgeClient,
    Ensemble,
    GroupRanking,
    JudgeRef,
    JudgeSettings,
    ModelJudgement,
    PairJudgement,
    RubricJudgement,
    StepScores,
    Timings,
    Usage,
)
from assay.clients.judging.rubrics import Combination
from assay.clients.judging.types import LowMass, Overflow, ScoringMode
from assay.clients.types import Fault as ClientFault
from assay.clients.types import ToolCall, Turn
from assay.kit.judgements import SPENT
from assay.kit.reasons import Reason
from assay.reward_server.domain import (
    INVALID_PARAMETER,
    MISSING_REFERENCE,
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Component,
    Fault,
    Judgement,
    Outcome,
    ParameterSpec,
    ParameterValue,
    RemoteOutcome,
    RemoteVerifier,
    Unjudgeable,
    VerifierItem,
)

Parameters = Mapping[str, ParameterValue]

MODEL = ParameterSpec("model", "string", "", "The model, as genrm names it; empty: its default.")
TEMPLATE = ParameterSpec(
    "template", "string", "", "The prompt, 'name' or 'name@version'; empty: genrm's default."
)
VOTES = ParameterSpec(
    "votes",
    "int",
    0,
    "Votes to sample, where votes are sampled; 0: genrm's default.",
    minimum=0,
    maximum=256,
)
TEMPERATURE = ParameterSpec(
    "temperature",
    "float",
    -1.0,
    "Of what is sampled; below 0: 1 where several votes are sampled, else 0.",
    minimum=-1.0,
    maximum=10.0,
)
MAX_TOKENS = ParameterSpec(
    "max_tokens",
    "int",
    0,
    "The most that the model may write for one vote; 0: the template's default.",
    minimum=0,
    maximum=32768,
)
SEED = ParameterSpec(
    "seed",
    "int",
    -1,
    "Of the sampling and of drawn letters; below 0: one for each call that nobody can know ahead.",
    minimum=-1,
)
META_CRITIQUE = ParameterSpec(
    "meta_critique",
    "bool",
    False,
    "Each critique is itself criticised and its verdicts refined before they count.",
)
OVERFLOW = ParameterSpec(
    "overflow",
    "string",
    "keep-ends",
    "A response longer than the model's context: keep its ends and say so, the verdict overlong "
    "with the least reward, or refuse it (a fault).",
    allowed_values=("keep-ends", "overlong", "refuse"),
)
OVERLONG = "overlong"
_ROOM = ("others_tokens", "limit_tokens")  # of genrm's fault CONTEXT_TOO_LONG
ENSEMBLE = (
    ParameterSpec("models", "string-list", (), "An ensemble: models that each judge; none: model."),
    ParameterSpec(
        "combination",
        "string",
        "mean",
        "How the scores of an ensemble become one; majority: 1 or 0, by the side of 0.5.",
        allowed_values=("mean", "median", "majority", "min"),
    ),
    ParameterSpec(
        "quorum",
        "int",
        0,
        "Models of an ensemble that must have judged; 0: more than half.",
        minimum=0,
        maximum=16,
    ),
)


LOW_MASS = ParameterSpec(
    "low_mass",
    "string",
    "refuse",
    "Where the verdicts hold less of the model's probability than the template wants, so that it "
    "would say something else: refuse (a fault), or sample votes.",
    allowed_values=("refuse", "votes"),
)


MAX_LETTER_GAP = ParameterSpec(
    "max_letter_gap",
    "float",
    1.0,
    "The greatest distance by which the verdict may move when the letters that stand for it change "
    "sides; 1: any.",
    minimum=0.0,
    maximum=1.0,
)
ON_LETTER_GAP = ParameterSpec(
    "on_letter_gap",
    "string",
    "fault",
    "What becomes of an item past max_letter_gap: the fault LETTER_GAP, the verdict abstained with "
    "gap_reward, or half the gap off its reward, which is the lower of the two readings.",
    allowed_values=("fault", "abstain", "lower"),
)
ABSTAINED = "abstained"


def gap_reward(default: float) -> ParameterSpec:
    """The parameter `gap_reward` with this default."""
    return ParameterSpec(
        "gap_reward",
        "float",
        default,
        "The reward of the verdict abstained.",
        minimum=0.0,
        maximum=1.0,
    )


def scoring(*modes: str) -> ParameterSpec:
    """The parameter `scoring` with these modes; the first is the default."""
    return ParameterSpec(
        "scoring",
        "string",
        modes[0],
        "How a verdict becomes a number; auto: by the verdict tokens' probabilities where the "
        "engine gives them, else by votes.",
        allowed_values=modes,
    )


def judged_by(*modes: str) -> tuple[ParameterSpec, ...]:
    """The model, its template and how it is read, with these modes of `scoring`."""
    how = (VOTES, TEMPERATURE, MAX_TOKENS, SEED, OVERFLOW, LOW_MASS)
    return MODEL, TEMPLATE, scoring(*modes), *how


def threshold(what: str) -> ParameterSpec:
    """The parameter `threshold`, from which on the verdict is `what`."""
    return ParameterSpec(
        "threshold",
        "float",
        0.5,
        f"The least reward whose verdict is {what!r}.",
        minimum=0.0,
        maximum=1.0,
    )


class Timed(Protocol):
    """An answer of the client with its timings and what it took."""

    @property
    def usage(self) -> Usage:
        """Tokens, seconds and cost."""

    @property
    def timings(self) -> Timings:
        """Seconds in the queue and in execution."""


Key = TypeVar("Key", bound=Hashable)
Settings = TypeVar("Settings", bound=Hashable)
Question = TypeVar("Question")
Answer = TypeVar("Answer", bound=Timed)


async def ask(
    questions: Mapping[Key, tuple[Settings, Question]],
    send: Callable[[list[Question], Settings], Awaitable[Sequence[Answer | ClientFault]]],
) -> dict[Key, Answer | ClientFault]:
    """Sends questions, those of equal settings together, and gives the answer of each.

    Args:
        questions: settings and question, by any name.
        send: asks questions of equal settings; answers in order.
    """
    together: dict[Settings, list[Key]] = {}
    for key, (settings, _) in questions.items():
        together.setdefault(settings, []).append(key)
    calls = [
        send([questions[key][1] for key in keys], settings) for settings, keys in together.items()
    ]
    answers: dict[Key, Answer | ClientFault] = {}
    for keys, found in zip(together.values(), await asyncio.gather(*calls), strict=True):
        answers.update(zip(keys, found, strict=True))
    return answers


class OneByOne(RemoteVerifier, Generic[Settings, Question, Answer]):
    """A judge that asks genrm one question for each item.

    Args:
        client: reaches genrm; closed with the verifier.
    """

    def __init__(self, client: AsyncJudgeClient) -> None:
        self._client = client

    def text(self, item: VerifierItem) -> str:
        """What of an item the model is shown as the response."""
        return item.response()

    @abstractmethod
    def question(self, item: VerifierItem) -> tuple[Settings, Question]:
        """The question about an item.

        Raises:
            Unjudgeable: the item itself prevents a judgement.
        """

    @abstractmethod
    async def send(
        self, questions: list[Question], settings: Settings, timeout_s: float
    ) -> Sequence[Answer | ClientFault]:
        """Asks genrm; answers in order."""

    @abstractmethod
    def answer(self, item: VerifierItem, found: Answer) -> Judgement:
        """The judgement that an answer gives.

        Raises:
            Unjudgeable: it is not of the kind that the item asks for.
        """

    @abstractmethod
    def least(self, item: VerifierItem, verdict: str, why: str) -> Judgement:
        """The judgement with the least reward, for a response that cannot be shown to a model."""

    async def judge_all(
        self, items: Sequence[VerifierItem], timeout_s: float
    ) -> list[RemoteOutcome]:
        """Asks about all items at once; see `RemoteVerifier.judge_all`."""
        outcomes: dict[int, RemoteOutcome] = {}
        questions: dict[int, tuple[Settings, Question]] = {}
        for index, item in enumerate(items):
            try:
                question = self.question(item)
                if self.text(item).strip():
                    questions[index] = question
                else:
                    outcomes[index] = RemoteOutcome(self._blank(item))
            except Unjudgeable as trouble:
                outcomes[index] = RemoteOutcome(Fault(trouble.reason, trouble.message))
        answers = await ask(questions, lambda some, settings: self.send(some, settings, timeout_s))
        for index, answer in answers.items():
            outcomes[index] = self._outcome(items[index], answer)
        return [outcomes[index] for index in range(len(items))]

    def _blank(self, item: VerifierItem) -> Judgement:
        why = "the response is blank, or holds nothing to judge; no model was asked"
        return self.least(item, "unparsed", why)

    def _outcome(self, item: VerifierItem, found: Answer | ClientFault) -> RemoteOutcome:
        if isinstance(found, ClientFault):
            if found.reason == Reason.MISSING_RESPONSE:
                # Blank by genrm's reading, if not by ours.
                return RemoteOutcome(self._blank(item))
            if found.reason == Reason.CONTEXT_TOO_LONG and is_overlong(item, found):
                return RemoteOutcome(self.least(item, OVERLONG, found.message))
            return RemoteOutcome(fault_of(found))
        outcome: Outcome
        try:
            if getattr(found, "truncated", False) and is_overlong(item):
                judgement = self.least(item, OVERLONG, TOO_LONG)
            else:
                judgement = self.answer(item, found)
            outcome = with_spent(judgement, found.usage)
        except Unjudgeable as trouble:
            outcome = Fault(trouble.reason, trouble.message)
        return RemoteOutcome(outcome, found.timings.queue_s, found.timings.execution_s)

    async def close(self) -> None:
        """Closes the client."""
        await self._client.close()


TOO_LONG = "the response is longer than the model's context"


def is_overlong(item: VerifierItem, fault: ClientFault | None = None) -> bool:
    """Whether a text that did not fit makes the response `overlong`: asked for, and its doing.

    It is the response's doing where all else takes at most half of the room, as genrm counts it
    (`fault`), or where it is the longest text.
    """
    if item.parameters["overflow"] != OVERLONG:
        return False
    counts = [(fault.metadata if fault else {}).get(name, "") for name in _ROOM]
    if all(count.isdecimal() for count in counts) and 2 * int(counts[0]) <= int(counts[1]):
        return True
    others = [message.content for message in item.prompt]
    others += [*item.references, item.anchor or ""]
    longest = max(map(len, others), default=0)
    return len(said(item)) >= longest


def said(item: VerifierItem) -> str:
    """All that the policy says, a dialogue's turns and calls joined."""
    if not item.candidate.turns:
        return item.response()
    own = [turn for turn in item.candidate.turns if turn.from_policy]
    calls = (call.name for turn in own for call in turn.calls)
    return "\n".join([*(turn.content for turn in own), *calls])


def turns_of(item: VerifierItem) -> tuple[Turn, ...]:
    """The turns of a dialogue, as the client takes them; none for a response of one text."""
    return tuple(
        Turn(
            turn.role,
            turn.content,
            turn.from_policy,
            [ToolCall(call.name, call.arguments) for call in turn.calls],
        )
        for turn in item.candidate.turns
    )


def overflow(parameters: Parameters) -> Overflow:
    """What genrm does with a response longer than the context."""
    return "refuse" if parameters.get("overflow", "refuse") == "refuse" else "keep-ends"


def judge_settings(parameters: Parameters, run: str) -> JudgeSettings:
    """The settings in the parameters; genrm chooses the rest. `run` is whose account it is on."""
    temperature = number(parameters, "temperature", -1.0)
    seed = int(number(parameters, "seed", -1))
    bound = number(parameters, "max_letter_gap", 1.0)
    strict = parameters.get("on_letter_gap", "fault") == "fault" and bound < 1.0
    return JudgeSettings(
        model=str(parameters["model"]),
        template=str(parameters.get("template", "")),
        scoring=cast("ScoringMode", parameters.get("scoring", "auto")),
        votes=int(number(parameters, "votes", 0)),
        temperature=None if temperature < 0 else temperature,
        max_tokens=int(number(parameters, "max_tokens", 0)),
        seed=None if seed < 0 else seed,
        overflow=overflow(parameters),
        meta_critique=parameters.get("meta_critique") is True,
        low_mass=cast("LowMass", parameters.get("low_mass", "refuse")),
        max_letter_gap=bound if strict else None,
        run=run,
    )


def letter_excess(
    found: ModelJudgement | PairJudgement, parameters: Parameters
) -> Literal["", "abstain", "lower"]:
    """What becomes of a judgement that moved with the letters by more than `max_letter_gap`.

    Empty where it did not.

    Raises:
        Unjudgeable: INVALID_PARAMETER, there is a bound and no letter gap to hold against it.
    """
    bound = number(parameters, "max_letter_gap", 1.0)
    if bound >= 1.0:
        return ""
    if found.letter_gap is None:
        raise Unjudgeable(
            INVALID_PARAMETER,
            f"template {found.judge.template!r} drew no letters, or votes were sampled: there is "
            "no letter gap; leave out max_letter_gap",
        )
    if found.letter_gap <= bound:
        return ""
    return "abstain" if parameters["on_letter_gap"] == "abstain" else "lower"


def withheld(name: str, reward: float, parameters: Parameters) -> list[Component]:
    """The components of a judgement that abstains: `gap_reward` in place of its reward."""
    return [
        Component(name, reward, 0.0),
        Component(ABSTAINED, number(parameters, "gap_reward", 0.0)),
    ]


def weighed(
    name: str, reward: float, found: ModelJudgement | PairJudgement, parameters: Parameters
) -> tuple[list[Component], bool]:
    """The components of a reward in [0, 1], and whether the judgement abstains.

    The verdict's distance between its two readings costs what `on_letter_gap` says.
    """
    match letter_excess(found, parameters):
        case "abstain":
            return withheld(name, reward, parameters), True
        case "lower":
            taken = min(reward, (found.letter_gap or 0.0) / 2)
            return [Component(name, reward), Component("letter-gap-penalty", -taken)], False
    return [Component(name, reward)], False


def spent(usage: Usage, share: float = 1.0) -> tuple[Component, ...]:
    """What a share of an answer took, as components of weight 0; see `SPENT`."""
    computed = usage.prompt - usage.cached + usage.completion
    values = (computed, usage.engine_s, usage.cost)
    named = zip(SPENT, values, strict=True)
    return tuple(Component(name, share * value, 0.0) for name, value in named if value > 0)


def with_spent(judgement: Judgement, usage: Usage, share: float = 1.0) -> Judgement:
    """The judgement, with what it took."""
    parts = (*judgement.components, *spent(usage, share))
    return dataclasses.replace(judgement, components=parts)


def ensemble(parameters: Parameters) -> Ensemble | None:
    """The ensemble of the parameters; None for one model.

    Raises:
        Unjudgeable: INVALID_PARAMETER, it has one model.
    """
    models = parameters["models"]
    if not isinstance(models, tuple) or not models:
        return None
    if len(models) < 2:
        raise Unjudgeable(
            INVALID_PARAMETER, "parameter 'models' names one model; name several, or use 'model'"
        )
    combination = cast("Combination", parameters["combination"])
    return Ensemble(models, combination, int(number(parameters, "quorum", 0)))


def measures(
    found: ModelJudgement | PairJudgement | GroupRanking | RubricJudgement | StepScores,
) -> list[Component]:
    """What else is known of a judgement, as components of weight 0."""
    known = {
        "standard-error": getattr(found, "standard_error", None),
        "verdict-mass": found.verdict_mass,
        "disagreement": getattr(found, "disagreement", None),
        "letter-gap": getattr(found, "letter_gap", None),
    }
    return [Component(name, value, 0.0) for name, value in known.items() if value is not None]


def number(parameters: Parameters, name: str, default: float) -> float:
    """A parameter that is a number."""
    value = parameters.get(name, default)
    if not isinstance(value, int | float):
        raise TypeError(f"parameter {name!r} is no number")
    return value


def prompt_of(item: VerifierItem) -> list[dict[str, str]]:
    """What the policy was asked, as the client takes it."""
    return [{"role": message.role, "content": message.content} for message in item.prompt]


def ground_truth(item: VerifierItem) -> str:
    """The right answers as one text; empty when the item has none.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank one.
    """
    if not all(reference.strip() for reference in item.references):
        raise Unjudgeable(UNUSABLE_REFERENCE, "a reference is blank; write the right answer")
    if len(item.references) < 2:
        return "".join(item.references)
    answers = [f"{index}. {text}" for index, text in enumerate(item.references, start=1)]
    return "\n".join(["Any one of these answers is right:", *answers])


def anchor_of(item: VerifierItem) -> str:
    """The response to beat.

    Raises:
        Unjudgeable: MISSING_REFERENCE where there is none, UNUSABLE_REFERENCE for a blank one.
    """
    if item.anchor is None:
        raise Unjudgeable(
            MISSING_REFERENCE, "the item has no anchor: pass the response to beat as its reference"
        )
    if not item.anchor.strip():
        raise Unjudgeable(UNUSABLE_REFERENCE, "the anchor is blank; write the response to beat")
    return item.anchor


def refuse_data(item: VerifierItem) -> None:
    """Refuses references that are no text.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT.
    """
    if item.data is not None:
        raise Unjudgeable(
            UNSUPPORTED_INPUT, "a model takes texts or an anchor as reference, not data"
        )


def fault_of(found: ClientFault) -> Fault:
    """A fault of genrm, or of the way there, as the item's."""
    return Fault(found.reason, found.message, dict(found.metadata))


def signature(judge: JudgeRef, usage: Usage, *, cut: bool = False, unparsed: int = 0) -> str:
    """Who judged and what it took, as the end of an explanation."""
    text = f"by {judge.model}@{judge.revision or 'unknown'}"
    if judge.template:
        text += f" with {judge.template}"
    text += f"; {usage.prompt} tokens read ({usage.cached} kept), {usage.completion} written"
    if unparsed:
        text += f"; {unparsed} votes could not be parsed"
    return f"{text}; the response was cut to fit" if cut else text


def graded(score: float, least: float, names: tuple[str, str]) -> str:
    """The first name from `least` on, else the second."""
    return names[0] if score >= least else names[1]


Against = Literal["ground-truth", "anchor", "rubric", "prompt"]
