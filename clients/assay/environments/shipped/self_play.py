"""`search-self-play`: one policy asks, checks and answers questions over a corpus.

Search self-play (SSP, arXiv 2510.18821), with the values of its code; `format_penalty` 0 is its
training script's, -1 its configuration file's. But the check is the same policy's, and one that
fails for reasons of ours is a fault, where SSP's code lets the question pass.
docs/use/environments.md says who reads and earns what, and which questions are refused.
"""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from assay.clients.faults import make_fault
from assay.clients.types import Judgement, Result
from assay.environments.environment import Proof, Row
from assay.environments.shipped.answers import (
    MEASURES,
    answer_judge,
    in_a_row,
    references,
    said,
    score_of,
    tagged,
    without_tags,
)
from assay.environments.shipped.evidence import (
    CHECKER,
    TOOLS,
    CorpusEnvironment,
    Evidence,
    check,
    entry,
    sufficiency,
)
from assay.environments.shipped.memory import CONTROL
from assay.environments.shipped.search import first_document
from assay.environments.types import EpisodeMessage, Observation, Reply, ToolCall
from assay.kit.judgements import Component
from assay.kit.reasons import Reason

PROPOSER, SOLVER = "proposer", "solver"
ProposerReward = Literal["1-acc", "difficulty"]
_LEAST_CHARS, _MOST_CHARS = 10, 1000
_LEAST_LETTERS = 4
_PROPOSE = (
    "Write a question whose only right answer is the one given below, for somebody who searches "
    "these documents. First search for what belongs to the answer, at least {searches} times and "
    "each time for something else. The question has at least {words} words, does not hold the "
    "answer, and can be answered from what your searches showed. Write it between <question> and "
    "</question>."
)
_SOLVE = (
    "Answer the question by searching the documents. When you know, write a short answer between "
    "<answer> and </answer>."
)
_NOTHING = Judgement(0.0, "unparsed", (Component("answer", 0.0),))


@dataclass(frozen=True, slots=True)
class SelfPlaySettings:
    """Settings of `search-self-play`; the corpus and its showing as in `search`.

    Attributes:
        solvers: that each question is given to.
        proposer_reward: "1-acc" or "difficulty"; see the module.
        left: of "difficulty".
        right: of "difficulty".
        format_penalty: the proposer's reward for a question that is refused.
        proposer_turns: of the proposer, its question included.
        solver_turns: of each solver, its answer included.
        least_words: of a question.
        least_searches: before a question.
        answer_in_query: whether a search of the proposer may hold the answer.
        distractors: other documents among those that the checker reads.
        verifier: as in `search`.
        measure: as in `search`.
    """

    corpus: str = ""
    keep_index: bool = False
    most_documents: int = 10
    search_chars: int = 2000
    open_chars: int = 8000
    verifier: str = "search-qa"
    measure: str = "em"
    solvers: int = 5
    proposer_reward: ProposerReward = "1-acc"
    left: float = 0.0
    right: float = 1.0
    format_penalty: float = 0.0
    proposer_turns: int = 8
    solver_turns: int = 8
    least_words: int = 10
    least_searches: int = 2
    answer_in_query: bool = True
    distractors: int = 0

    def __post_init__(self) -> None:
        if self.proposer_reward not in ("1-acc", "difficulty"):
            raise ValueError(f"proposer_reward is {self.proposer_reward!r}: 1-acc or difficulty")
        if self.measure not in MEASURES:
            raise ValueError(f"measure is {self.measure!r}; there are: {', '.join(MEASURES)}")
        if self.solvers < 1 or self.solver_turns < 1:
            raise ValueError("solvers and solver_turns are at least 1")
        if self.proposer_turns <= self.least_searches > 0:
            raise ValueError("proposer_turns must leave a turn for the question after its searches")
        if min(self.least_words, self.least_searches, self.distractors) < 0:
            raise ValueError("least_words, least_searches and distractors are at least 0")
        if min(self.most_documents, self.search_chars, self.open_chars) < 1:
            raise ValueError("most_documents and the numbers of characters are at least 1")


def proposer_reward(rate: float, kind: ProposerReward, left: float, right: float) -> float:
    """The reward of a question that a share `rate` of the solvers answers rightly."""
    if kind == "1-acc":
        return 1.0 - rate
    return 4.0 * (left + rate) * (right - rate) if 0.0 < rate < 1.0 else 0.0


def leaks(question: str, answer: str) -> bool:
    """Whether a question holds an answer."""
    if in_a_row(question, answer):
        return True
    letters = [re.escape(one) for one in _plain(answer) if one.isalnum()]
    if len(letters) < _LEAST_LETTERS:
        return False
    spread = r"[\W_]*".join(letters)
    return re.search(rf"(?<![^\W_]){spread}(?![^\W_])", _plain(question)) is not None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKD", text).casefold()


class SearchSelfPlay(CorpusEnvironment):
    """Search self-play: asks, checks and answers questions over a corpus."""

    name = "search-self-play"
    needs = ("reference",)
    Settings = SelfPlaySettings
    settings: SelfPlaySettings

    @classmethod
    def proofs(cls, settings: SelfPlaySettings) -> Sequence[Proof]:
        """One solver of n is right about the first document; a question with its answer is none."""
        _, words, held = first_document(settings.corpus)
        row = {"prompt": "", "reference": held}
        finds = [
            ToolCall("search", {"query": f"{words[: 40 + number]} {number}"})
            for number in range(max(settings.least_searches, 1))
        ]
        filler = " ".join(["please"] * settings.least_words)
        question = f"<question>Which words begin this corpus, {filler}?</question>"
        right, wrong = f"<answer>{held}</answer>", "<answer>zzz qqq</answer>"
        several = settings.solvers
        rate = 1.0 / several
        earned = proposer_reward(rate, settings.proposer_reward, settings.left, settings.right)
        leaked = f"<question>Is it {held}, {filler}?</question>"
        refused = Proof(row, [*finds, leaked], settings.format_penalty)
        if not settings.answer_in_query:  # the words that find the document hold the answer
            return [refused]
        turns: list[ToolCall | str] = [*finds, question, right, right, *[wrong] * (several - 1)]
        unanswered = Proof(row, [*finds, question, wrong], settings.format_penalty)
        return [Proof(row, turns, earned), unanswered, refused]

    def reset(self, row: Row) -> Observation:
        """The answer, for the proposer; ValueError for a row without one."""
        self._right = references(row)
        self._judge = answer_judge(self.services, self.settings.verifier, self.settings.measure)
        self._question = self._refused = ""
        self._turns = 0
        self._checked: Result | None = None
        self._scores: list[Result] = []
        self._speaker = PROPOSER
        settings = self.settings
        task = _PROPOSE.format(searches=settings.least_searches, words=settings.least_words)
        hint = str(row.get("hint", "") or "").strip()
        text = f"<answer>\n{self._right[0]}\n</answer>" + (f"\n\n{hint}" if hint else "")
        messages = (EpisodeMessage("system", task), EpisodeMessage("user", text))
        return Observation(messages, PROPOSER, tools=TOOLS)

    async def answered(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Any:
        """What was found; who used up its turns has failed, and so has a checker that calls."""
        del answers
        self._turns += 1
        if turn.agent == CHECKER:
            return self._after_check(Result("", _NOTHING)) or Observation(())
        if turn.agent == PROPOSER:
            if self._turns < self.settings.proposer_turns:
                return None
            self._refused = "the proposer used up its turns"
            return Observation(())
        if self._turns < self.settings.solver_turns:
            return None
        return self._after_answer(Result("", _NOTHING)) or Observation(())

    async def turn(self, turn: Reply) -> Observation | None:
        """A question, the check of it, or an answer to it."""
        self._turns += 1
        if turn.agent == PROPOSER:
            return self._after_question(turn)
        if turn.agent == CHECKER:
            return self._after_check(await sufficiency(self._judge, turn, self._right))
        answer = tagged(said(turn), "answer")
        result = Result("", _NOTHING)
        if answer is not None:
            result = await self._judge.answer(answer, self._right)
        return self._after_answer(result)

    def reward(self) -> Any:
        """See the module, by agent."""
        settings = self.settings
        if self._speaker == PROPOSER and not self._refused:
            self._refused = "the episode ended before there was a question"
        solvers = {f"{SOLVER}#{number}": one for number, one in enumerate(self._scores, start=1)}
        checks = {} if self._checked is None else {CHECKER: self._checked}
        if self._refused:
            return {PROPOSER: self._proposed(settings.format_penalty, 0.0), **checks}
        if self._speaker.startswith(SOLVER) and self._turns and self._due():
            solvers[self._speaker] = Result("", _NOTHING)
        if not solvers:
            text = "the episode's limit left no solver a turn: allow more turns or tokens"
            return make_fault(Reason.EPISODE_CUT, text)
        rate = sum(score_of(one) >= 1.0 for one in solvers.values()) / len(solvers)
        earned = proposer_reward(rate, settings.proposer_reward, settings.left, settings.right)
        return {PROPOSER: self._proposed(earned, rate), **checks, **solvers}

    def _proposed(self, reward: float, rate: float) -> Judgement:
        taken = not self._refused
        parts = (
            Component("proposer", reward),
            Component("accepted", float(taken), 0.0),
            Component("accuracy", rate, 0.0),
        )
        verdict = "accepted" if taken else "refused"
        return Judgement.composed(verdict, parts, explanation=self._refused)

    def _due(self) -> bool:
        return self._speaker == f"{SOLVER}#{len(self._scores) + 1}"

    def _after_question(self, turn: Reply) -> Observation | None:
        question = tagged(said(turn), "question") or ""
        self._question = without_tags(question, *CONTROL).strip()[: _MOST_CHARS + 1]
        self._refused = self._trouble()
        if self._refused:
            return None
        self._begin(CHECKER)
        return check(self._question, self._documents(), 4 * self.settings.open_chars)

    def _trouble(self) -> str:
        """Why a question is refused; empty for no reason."""
        settings, question = self.settings, self._question
        queries = [one.casefold() for one in self.queries]
        checks = (
            (
                not _LEAST_CHARS <= len(question) <= _MOST_CHARS,
                "there is no question, or it is too short or too long",
            ),
            (
                len(question.split()) < settings.least_words,
                f"the question has fewer than {settings.least_words} words",
            ),
            (self._holds_answer(question), "the question holds the answer"),
            (
                len(queries) < settings.least_searches,
                f"there were fewer than {settings.least_searches} searches",
            ),
            (len(set(queries)) < len(queries), "a search was made twice"),
            (
                not settings.answer_in_query and any(map(self._holds_answer, queries)),
                "a search held the answer",
            ),
            (not self.evidence.shown, "no search showed a document"),
        )
        return next((why for is_so, why in checks if is_so), "")

    def _holds_answer(self, text: str) -> bool:
        return any(leaks(text, one) for one in self._right)

    def _documents(self) -> list[str]:
        """What the checker reads: what was shown, among other documents where these are set."""
        entries = self.evidence.entries()
        if not self.settings.distractors:
            return entries
        seed = hashlib.sha256(self._question.encode("utf-8", "replace")).digest()
        draw = random.Random(seed)  # noqa: S311  # no secret: the same for the same question
        others = [one for one in self.shared.documents if one.id not in self.evidence.shown]
        for one in draw.sample(others, min(self.settings.distractors, len(others))):
            entries.append(entry(one.id, one.title, one.text[: self.settings.search_chars]))
        draw.shuffle(entries)
        return entries

    def _after_check(self, result: Result) -> Observation | None:
        self._checked = result
        if score_of(result) < 1.0:
            self._refused = "the documents that were shown do not give the answer"
            return None
        return self._solver()

    def _after_answer(self, result: Result) -> Observation | None:
        score_of(result)
        self._scores.append(result)
        return self._solver() if len(self._scores) < self.settings.solvers else None

    def _solver(self) -> Observation:
        self._begin(f"{SOLVER}#{len(self._scores) + 1}")
        messages = (EpisodeMessage("system", _SOLVE), EpisodeMessage("user", self._question))
        return Observation(messages, self._speaker, self._speaker, tools=TOOLS)

    def _begin(self, agent: str) -> None:
        """Another agent speaks: it knows nothing of what was found before."""
        self._speaker = agent
        self._turns = 0
        if agent != CHECKER:
            self.evidence, self.queries = Evidence(), []
