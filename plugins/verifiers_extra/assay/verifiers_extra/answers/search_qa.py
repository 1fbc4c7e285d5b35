"""`search-qa`: the last answer of a search agent's rollout, and what its searches and form earn.

**What it judges.** The last `<answer>` against the references as `token-f1` measures it: `em`,
`subem` (words in a row) or `f1`. A rollout is one text, or a dialogue (`turns`) whose messages say
which of them the policy wrote. `tags` is its format: `search-r1` (`<think>`, `<search>`,
`<information>`, `<answer>`), `research` (finds in `<result>`, a box inside of `<answer>`), or
`r1-searcher` (queries and documents inside of the thought). The structure is right when thought,
query, finds, thought, ..., answer follow one another with no text between them.

By default the reward is the measure. The parameters make it Search-R1's format-aware one, in which
a partial `f1` stands for the 1 and is never worth less than a wrong answer:

| | structure right | structure wrong |
|---|---|---|
| answer right | 1 | 1 - `structured` |
| answer wrong | `structured`, + `retrieved` where a tool's text holds a reference | `answered` |
| no answer | | 0 |

The measures `answered`, `structure` and `retrieval` reward one of these alone, for profiles that
weigh them.

**Whose text it is.** Only a dialogue tells. There a policy that writes `<information>` itself has a
wrong structure and no find. With one text `retrieved` is a fault, unless `trusted` says that the
rollout loop stops the policy at the end of a query and removes such marks from what it writes. An
answer inside of finds is never the policy's.

**What a policy could game.** In one text it can write `<information>` itself for the structure's
reward. Parts may be blank, queries anything, and a tool may echo an answer guessed in a query: keep
`structured` and `retrieved` small. `subem` is right for a list of candidates.

**Differences from Search-R1, verl, ReSearch and R1-Searcher.**

1. The prompt is no part of the rollout. Search-R1 reads both and asks for two answers; its prompt
   holds two already, so that there a rollout without an answer has answered "Beijing".
2. `<answer>` in finds is the tool's. Of more than ten answers none is taken (verl: a quarter).
3. `subem` and finds compare words in a row: "know" does not hold "no". A text of which SQuAD's form
   leaves nothing equals itself alone.
4. ReSearch lets text stand between parts and gives F1 even below a wrong answer's reward.
   R1-Searcher's own normalisation and punishments ("Assistant", Chinese, over ten words) are not
   done. Neither was run beside ours.

**Known limits.** As `token-f1`: no synonyms, no dates, "3.5" is "35".

**Measured.** Equal to verl's and Search-R1's functions, plain and format-aware, on 20,000 generated
and mutated rollouts each, but for differences 1 to 3.

**Sources.** Search-R1 (arXiv 2503.09516, format-aware: 2505.15117), ReSearch (2503.19470),
R1-Searcher (2503.05592).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from assay.reward_server import (
    INVALID_PARAMETER,
    Component,
    Judgement,
    OneOf,
    Range,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.reward_server.verifiers import suspicions
from assay.reward_server.verifiers.text.forms import answer_words
from assay.reward_server.verifiers.text.parts import (
    MAX_CHARS,
    NoPart,
    part_of,
    shown,
    usable_answers,
)
from assay.reward_server.verifiers.text.token_f1 import holds_in_a_row, measured
from assay.verifiers_extra.answers.rollouts import KINDS, Kind, SearchRollout, read

_MOST_ANSWERS = 10
_GLANCE_CHARS = 65_536
_SIGNS = ("answered", "structure", "retrieval")


def _glance(item: VerifierItem, **parameters: object) -> Judgement | None:
    texts = [item.candidate.text or "", *(turn.content for turn in item.candidate.turns)]
    if sum(map(len, texts)) * len(item.references) > _GLANCE_CHARS:
        return None
    return _judged(item, _Settings(**parameters))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class _Settings:
    tags: str = "search-r1"
    measure: str = "em"
    structured: float = 0.0
    retrieved: float = 0.0
    answered: float = 0.0
    trusted: bool = False
    opened: bool = False


@verifier(
    "search-qa",
    tasks=("search-qa", "search-r1"),
    verdicts=("correct", "partial", "incorrect", "unparsed"),
    glance=_glance,
)
def search_qa(
    item: VerifierItem,
    *,
    tags: Annotated[str, OneOf(tuple(KINDS)), "The format of the rollout."] = "search-r1",
    measure: Annotated[
        Literal["em", "subem", "f1", "answered", "structure", "retrieval"],
        "em: equal after normalisation; subem: the answer holds the reference's words in a row; "
        "f1: overlap of words; or 1 for nothing but an answer in its tags (answered), a right "
        "structure, or a tool's text that holds a reference (retrieval).",
    ] = "em",
    structured: Annotated[
        float,
        Range(0.0, 0.5),
        "The reward of a right structure without a right answer; a right answer without it "
        "loses as much.",
    ] = 0.0,
    retrieved: Annotated[
        float,
        Range(0.0, 0.5),
        "Added where the structure is right, the answer is not, and what a tool returned holds a "
        "reference; needs turns, or trusted.",
    ] = 0.0,
    answered: Annotated[
        float, Range(0.0, 0.5), "The reward of a wrong answer in its tags, the structure wrong."
    ] = 0.0,
    trusted: Annotated[
        bool,
        "Whether what stands in the tags of a single text as found was written by tools: only "
        "where the rollout loop sees to it.",
    ] = False,
    opened: Annotated[
        bool, "Whether the prompt ends with <think>, which the rollout then need not hold."
    ] = False,
) -> Judgement:
    """The last answer of a search agent's rollout equals a reference; format and finds may earn.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a blank or over-long reference; INVALID_PARAMETER for
            `retrieved` with a single text that is not `trusted`.
    """
    settings = _Settings(tags, measure, structured, retrieved, answered, trusted, opened)
    return _judged(item, settings)


def _judged(item: VerifierItem, settings: _Settings) -> Judgement:
    references = [answer_words(text) for text in usable_answers(item)]
    kind = KINDS[settings.tags]
    rollout = read(item.candidate, kind, opened=settings.opened)
    paid = "'retrieved'" if settings.retrieved else ""
    paid = paid or ("the measure 'retrieval'" if settings.measure == "retrieval" else "")
    if paid and not rollout.is_split and not settings.trusted:
        raise Unjudgeable(
            INVALID_PARAMETER,
            f"{paid} needs the rollout as turns, which say what tools wrote; or set 'trusted' "
            "where the rollout loop keeps the policy from writing it",
        )
    answer = _answer(rollout, kind)
    score = 0.0
    if answer is not None and settings.measure not in _SIGNS:
        words = answer_words(answer)
        score = max(measured(words, gold, settings.measure)[0] for gold in references)
    is_good = not rollout.trouble and (answer is not None or not kind.boxed)
    hit = any(_holds(text, references) for text in rollout.found)
    if settings.measure in _SIGNS:
        return _sign(settings.measure, (answer is not None, is_good, hit), rollout)
    wrong = settings.answered if answer is not None else 0.0
    if is_good:
        wrong = settings.structured + (settings.retrieved if hit else 0.0)
    lost = 0.0 if is_good else settings.structured
    reward = max(score - lost, wrong) if score else wrong
    verdict = "unparsed"
    if answer is not None:
        verdict = "correct" if score >= 1.0 else "partial" if score else "incorrect"
    why = f"{settings.measure} {score:.3f}" if answer is not None else "no answer"
    return Judgement.composed(
        verdict,
        (
            Component("reward", reward),
            Component(settings.measure, score, 0.0),
            Component("structure", float(is_good), 0.0),
            Component("retrieval", float(hit), 0.0),
        ),
        extracted_answer=None if answer is None else shown(answer),
        explanation=f"{why}; {rollout.trouble or 'the structure is right'}",
        suspicions=suspicions.scan(rollout.said),
    )


def _sign(measure: str, held: tuple[bool, bool, bool], rollout: SearchRollout) -> Judgement:
    """Whether a rollout has one thing, whatever it answers."""
    has = held[_SIGNS.index(measure)]
    return Judgement.composed(
        "correct" if has else "incorrect",
        (Component(measure, float(has)),),
        explanation=f"{measure}: {has}; {rollout.trouble or 'the structure is right'}",
        suspicions=suspicions.scan(rollout.said),
    )


def _answer(rollout: SearchRollout, kind: Kind) -> str | None:
    """The last answer; None where there is none, or one of too many."""
    if not 0 < len(rollout.answers) <= _MOST_ANSWERS:
        return None
    answer = rollout.answers[-1]
    if kind.boxed:
        part = part_of(answer, "boxed")
        return None if isinstance(part, NoPart) else part.text
    return answer if len(answer) <= MAX_CHARS else None


def _holds(text: str, references: list[list[str]]) -> bool:
    words = answer_words(text)
    return any(holds_in_a_row(words, gold) for gold in references)
