"""Answers in tags, and what judges them: verifiers of the services, or words alone.

`search-qa` judges an answer, and whether a document holds one; `citations` what is cited (both of
assay-rl-verifiers-extra). "words" compares words as SQuAD does, without services.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.clients.types import Item, Judgement, Result, Turn
from assay.environments.environment import EpisodeFault, Services
from assay.environments.types import Reply
from assay.kit.errors import ConfigError
from assay.kit.judgements import Component

WORDS = "words"
MEASURES = ("em", "subem", "f1")
_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_CITED = re.compile(r"\[([A-Za-z0-9_:.,\s-]{1,400})\]")
_ARTICLES = frozenset(("a", "an", "the"))
CITABLE = re.compile(r"[A-Za-z0-9_:.-]+")


def said(reply: Reply) -> str:
    """What a turn says, without thoughts: whatever the format left of it."""
    return without_thoughts(reply.text)


def without_thoughts(text: str) -> str:
    """A text without what stands in <think>: closed, open at its end, or opened by the prompt."""
    return _THOUGHT.sub("", text).rpartition("</think>")[2]


def tagged(text: str, name: str) -> str | None:
    """What stands in the last pair of a tag, stripped; None where there is none or it is blank."""
    closed = text.rfind(f"</{name}>")
    opened = text.rfind(f"<{name}>", 0, max(closed, 0))
    if closed < 0 or opened < 0:
        return None
    return text[opened + len(name) + 2 : closed].strip() or None


def without_tags(text: str, *names: str) -> str:
    """A text of a policy without the tags that an environment gives a meaning."""
    pattern = re.compile(rf"</?\s*(?:{'|'.join(names)})\s*>", re.IGNORECASE)
    # What the removal of one puts together is broken, not removed: two passes for any nesting.
    return pattern.sub(lambda tag: f"({tag.group()[1:]}", pattern.sub("", text))


def references(row: Mapping[str, Any]) -> list[str]:
    """A row's right answers.

    Raises:
        ValueError: it has none, or something else than texts.
    """
    given = row.get("reference")
    several = [given] if isinstance(given, str) else given
    if (
        not isinstance(several, Sequence)
        or not several
        or not all(isinstance(one, str) and one.strip() for one in several)
    ):
        raise ValueError("the row's reference is no answer: give a text, or a list of texts")
    return list(several)


class AnswerJudge(Protocol):
    """Judges short answers."""

    async def answer(self, answer: str, right: Sequence[str]) -> Result:
        """How right an answer is, in [0, 1]."""
        ...

    async def holds(self, document: str, right: Sequence[str]) -> bool:
        """Whether a document holds a right answer, word for word.

        Raises:
            EpisodeFault: nobody could say.
        """
        ...

    async def cites(self, text: str, shown: Mapping[str, str], gold: Sequence[str]) -> float:
        """How well a text cites: 1 where it cites documents of `gold` and no others, at least 0.

        `shown` are the documents that may be cited. EpisodeFault as in `holds`.
        """
        ...


@dataclass(frozen=True, slots=True)
class WordJudge:
    """Compares words; asks nobody."""

    measure: str = "f1"

    async def answer(self, answer: str, right: Sequence[str]) -> Result:
        """See AnswerJudge."""
        score = max(overlap(answer, one, self.measure) for one in right)
        verdict = "correct" if score >= 1 else "partial" if score else "incorrect"
        return Result("", Judgement(score, verdict, (Component(self.measure, score),)))

    async def holds(self, document: str, right: Sequence[str]) -> bool:
        """See AnswerJudge."""
        return any(in_a_row(document, one) for one in right)

    async def cites(self, text: str, shown: Mapping[str, str], gold: Sequence[str]) -> float:
        """See AnswerJudge: the share of the cited that is of `gold`, 0 where an id is unknown."""
        cited = cited_ids(text, shown)
        if not cited or not set(cited) <= set(shown):
            return 0.0
        return len(set(cited) & set(gold)) / len(set(cited))


@dataclass(frozen=True, slots=True)
class ServiceJudge:
    """Asks the verifiers `search-qa` (or `verifier`) and `citations`."""

    services: Services
    verifier: str
    measure: str

    async def answer(self, answer: str, right: Sequence[str]) -> Result:
        """See AnswerJudge."""
        return await self.services.score(
            Item(
                response=f"<answer>{without_tags(answer, 'answer')}</answer>",
                reference=list(right),
                verifier=self.verifier,
                parameters={"measure": self.measure} if self.verifier == "search-qa" else {},
            )
        )

    async def holds(self, document: str, right: Sequence[str]) -> bool:
        """See AnswerJudge."""
        asked = Item(
            turns=(
                Turn("tool", document),
                Turn("assistant", "<answer>none</answer>", from_policy=True),
            ),
            reference=list(right),
            verifier="search-qa",
        )
        return _component(await self.services.score(asked), "retrieval") > 0

    async def cites(self, text: str, shown: Mapping[str, str], gold: Sequence[str]) -> float:
        """See AnswerJudge: the verifier's precision, 0 where one of its gates fails."""
        if not gold:
            return 0.0
        asked = Item(
            response=_CITED.sub(_spread, text),
            reference={"passages": dict(shown), "gold": list(gold)},
            verifier="citations",
        )
        result = await self.services.score(asked)
        return _component(result, "gates") and _component(result, "precision")


def answer_judge(services: Services | None, verifier: str, measure: str) -> AnswerJudge:
    """The judge of a name: "words", or a verifier of the services.

    Raises:
        EpisodeFault: the verifier needs services, and there are none.
    """
    if measure not in MEASURES:
        raise ConfigError(f"the measure is {measure!r}; there are: {', '.join(MEASURES)}")
    if verifier == WORDS:
        return WordJudge(measure)
    if services is None:
        raise RuntimeError(
            f"the verifier {verifier!r} needs reward services; give some, or verifier = {WORDS!r}"
        )
    return ServiceJudge(services, verifier, measure)


def score_of(result: Result) -> float:
    """A result's reward.

    Raises:
        EpisodeFault: it is a fault.
    """
    if result.fault is not None:
        raise EpisodeFault(result.fault)
    return result.reward or 0.0


def cited_ids(text: str, shown: Collection[str]) -> list[str]:
    """The ids in square brackets, "[d1]" or "[d1, d2]", each once, in order, known or not.

    Where all that was shown has numbers for ids, a word in brackets is no citation.
    """
    numbers = all(one.isdecimal() for one in shown)
    found: dict[str, None] = {}
    for match in _CITED.finditer(text):
        if text[match.end() : match.end() + 1] == "(":
            continue  # a link
        for one in _listed(match):
            if CITABLE.fullmatch(one) and (one.isdecimal() or not numbers):
                found[one] = None
    return list(found)


def _listed(match: re.Match[str]) -> list[str]:
    return [one.strip() for one in match.group(1).split(",")]


def _spread(match: re.Match[str]) -> str:
    """A list of ids as citations of one id each, which every grammar of the verifier reads."""
    ids = _listed(match)
    whole = all(CITABLE.fullmatch(one) for one in ids)
    return " ".join(f"[{one}]" for one in ids) if whole else match.group()


def words_of(text: str) -> list[str]:
    """A text's words, as SQuAD compares them."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    kept = "".join(one if one.isalnum() else " " if one.isspace() else "" for one in plain)
    return [word for word in kept.split() if word not in _ARTICLES]


def in_a_row(text: str, part: str) -> bool:
    """Whether a text holds the words of another, in a row; never those of none."""
    words = words_of(part)
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(words_of(text))} "


def overlap(answer: str, right: str, measure: str) -> float:
    """How right an answer is by its words, in [0, 1]."""
    if measure == "subem":
        return float(in_a_row(answer, right))
    given, wanted = words_of(answer), words_of(right)
    if measure == "em" or not given or not wanted:
        return float(given == wanted and (bool(given) or answer.strip() == right.strip()))
    same = sum((Counter(given) & Counter(wanted)).values())
    return 2 * same / (len(given) + len(wanted))


def plan_overlap(plan: Sequence[str], gold: Sequence[str]) -> float:
    """How well sub-questions match gold ones: the F1 of the best pairs, each by its words' F1."""
    scored = sorted(
        ((overlap(one, other, "f1"), -i, -k) for i, one in enumerate(plan)
         for k, other in enumerate(gold)),
        reverse=True,
    )  # fmt: skip
    used: tuple[set[int], set[int]] = (set(), set())
    total = 0.0
    for score, i, k in scored:
        if i not in used[0] and k not in used[1]:
            used[0].add(i)
            used[1].add(k)
            total += score
    return 2 * total / (len(plan) + len(gold)) if plan and gold else 0.0


def _component(result: Result, name: str) -> float:
    score_of(result)
    judgement = result.judgement
    found = [one.score for one in (judgement.components if judgement else ()) if one.name == name]
    return found[0] if found else 0.0
