"""`search`: questions answered by searching a local corpus, with citations that are checked.

The agent "policy" earns `malformed` without an answer in <answer>, else answer * (1 - citations +
citations * cited) + completeness * checked + plan * planned: the verifier's judgement, by default
the F1 of words (DeepResearcher, arXiv 2504.03160); the share of cited documents that were shown and
hold it; the "checker"'s answer (evidence.py); sub-questions (APEX-Searcher). The weights are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.clients.types import Judgement, Result
from assay.environments.environment import EpisodeFault, Proof, Row, ToolError
from assay.environments.experience import notes_of
from assay.environments.shipped.answers import (
    CITABLE,
    MEASURES,
    AnswerJudge,
    answer_judge,
    cited_ids,
    plan_overlap,
    references,
    said,
    score_of,
    tagged,
)
from assay.environments.shipped.corpus import Corpus, documents_of
from assay.environments.shipped.evidence import CHECKER, CorpusEnvironment, check, sufficiency
from assay.environments.shipped.memory import CONTEXTS, AgentContext, ContextKind, ContextLimits
from assay.environments.types import POLICY, EpisodeMessage, Observation, Reply, ToolCall
from assay.kit.errors import ConfigError
from assay.kit.judgements import Component

_SYSTEM = (
    "Answer the question by searching the documents. Call search, and open_document where what was "
    "shown is cut. When you know, write a short answer between <answer> and </answer>."
)
_PLAN = (
    " Begin by writing between <plan> and </plan> the simpler questions that lead to the answer, "
    "one a line."
)
_CITE = (
    " Before it, say in a sentence why, and cite the documents that hold the answer by their ids, "
    "such as [d1]."
)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Settings of `search`.

    Attributes:
        corpus: path of a file of {"id", "title", "text"}, one a line.
        keep_index: keeps the index beside the corpus, for the next run.
        most_documents: that one search shows.
        search_chars: of a document that a search shows.
        open_chars: of a document that was opened, and of all that the checker reads, fourfold.
        context: "history", "summary" or "memory".
        summary_tokens: of a conversation, past which a summary is asked for; 0 for none.
        summary_turns: the same in turns.
        memory_chars: of a summary or a memory, at most.
        verifier: that judges the answer; "words" for comparing words without services.
        measure: "em", "subem" or "f1", of `search-qa` and of "words".
        malformed: the reward without an answer in its tags.
        citations: weight of citations in the answer's reward, in [0, 1].
        completeness: weight of the checker's answer; 0 asks none.
        experience: path of a file of notes that the policy reads first; see experience.py.
        plan: weight of the policy's sub-questions in a row that has `plan`, a list of the right
            ones; 0 asks for none.
    """

    corpus: str = ""
    keep_index: bool = False
    most_documents: int = 10
    search_chars: int = 2000
    open_chars: int = 8000
    context: ContextKind = "history"
    summary_tokens: int = 4096
    summary_turns: int = 0
    memory_chars: int = 4000
    verifier: str = "search-qa"
    measure: str = "f1"
    malformed: float = 0.0
    citations: float = 0.0
    completeness: float = 0.0
    plan: float = 0.0
    experience: str = ""

    def __post_init__(self) -> None:
        if self.context not in CONTEXTS:
            raise ValueError(f"context is {self.context!r}; there are: {', '.join(CONTEXTS)}")
        if self.measure not in MEASURES:
            raise ValueError(f"measure is {self.measure!r}; there are: {', '.join(MEASURES)}")
        if not 0 <= self.citations <= 1:
            raise ValueError("citations is a weight from 0 to 1")
        if min(self.completeness, self.plan) < 0:
            raise ValueError("completeness and plan are weights of at least 0")
        if self.context == "summary" and self.summary_tokens <= 0 >= self.summary_turns:
            raise ValueError("context summary needs summary_tokens or summary_turns")
        if min(self.most_documents, self.search_chars, self.open_chars, self.memory_chars) < 1:
            raise ValueError("most_documents and the numbers of characters are at least 1")


class SearchEnvironment(CorpusEnvironment):
    """Questions answered by searching a local corpus."""

    name = "search"
    Settings = SearchSettings
    settings: SearchSettings

    @classmethod
    @contextmanager
    def open(cls, settings: SearchSettings) -> Iterator[Corpus]:
        """Reads and indexes the corpus.

        Raises:
            ConfigError: it cannot be read, or its ids cannot be cited.
        """
        with super().open(settings) as corpus:
            if settings.citations:
                for document in corpus.documents:
                    if not CITABLE.fullmatch(document.id):
                        raise ConfigError(
                            f"{settings.corpus}: the id {document.id!r} cannot be cited: citations "
                            "need ids of letters, digits and _ : . -"
                        )
            yield corpus

    @classmethod
    def proofs(cls, settings: SearchSettings) -> Sequence[Proof]:
        """The first document is found by its words and cited; other answers earn what they must."""
        name, words, held = first_document(settings.corpus)
        row = {"prompt": f"What stands in {words}?", "reference": held}
        answer, wrong = f"<answer>{held}</answer>", "<answer>zzz qqq</answer>"
        without = [
            Proof(row, [wrong], 0.0),
            Proof(row, [answer], 1.0 - settings.citations),
            Proof(row, ["I do not know."], settings.malformed),
        ]
        if settings.context == "summary":  # after how many turns it asks depends on the documents
            return without
        find = ToolCall("search", {"query": words, "count": settings.most_documents})
        check_turn = [answer] if settings.completeness else []
        cited: list[ToolCall | str] = [find, f"It stands in [{name}]. {answer}", *check_turn]
        return [*without, Proof(row, cited, 1.0 + settings.completeness)]

    def reset(self, row: Row) -> Observation:
        """The question; ValueError for a row that is none."""
        self._right = references(row)
        if not str(row.get("prompt", "")).strip():
            raise ValueError("the row's prompt is no question")
        settings = self.settings
        self._gold_plan = plan_of(row) if settings.plan else []
        self._plan: list[str] | None = None
        limits = ContextLimits(
            settings.summary_tokens, settings.summary_turns, settings.memory_chars
        )
        notes = notes_of(settings.experience)
        self._context = AgentContext(
            settings.context,
            limits,
            _SYSTEM
            + (_PLAN if self._gold_plan else "")
            + (_CITE if settings.citations else "")
            + (f"\n\n{notes}" if notes else ""),
            str(row["prompt"]),
            agent=POLICY,
        )
        self._final: Reply | None = None
        self._checked: Reply | None = None
        return self._context.begin()

    def refuse_tools(self) -> None:
        """A summary is no turn with tools."""
        if self._context.is_summarising:
            raise ToolError("the conversation ends here: write the summary")

    def answered(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Observation:
        """What was found, in this conversation or the next; a checker that calls is done."""
        if turn.agent == CHECKER:
            self._checked = turn
            return Observation(())
        self._note_plan(turn)
        return self._context.follow(turn, answers)

    def turn(self, turn: Reply) -> Observation | None:
        """A summary, the answer, or the checker's."""
        if turn.agent == CHECKER:
            self._checked = turn
            return None
        if self._context.is_summarising:
            return self._context.follow(turn, ())
        self._note_plan(turn)
        self._final = turn
        if self.settings.completeness and self.evidence.shown:
            most = 4 * self.settings.open_chars
            return check(str(self.row["prompt"]), self.evidence.entries(), most)
        return None

    def _note_plan(self, turn: Reply) -> None:
        """The first turn's plan: one that comes later knows what was found."""
        if self._plan is None:
            lines = (tagged(said(turn), "plan") or "").splitlines()
            self._plan = [line.strip(" -*0123456789.)\t") for line in lines if line.strip()]

    async def reward(self) -> Any:
        """See the module; by agent where there is a checker."""
        judge = answer_judge(self.services, self.settings.verifier, self.settings.measure)
        try:
            return await self._reward(judge)
        except EpisodeFault as error:
            return error.fault

    async def _reward(self, judge: AnswerJudge) -> Any:
        checked: Result | None = None
        if self._checked is not None:
            checked = await sufficiency(judge, self._checked, self._right)
        completeness = score_of(checked) if checked is not None else 0.0
        own = await self._own(judge, completeness)
        return own if checked is None else {POLICY: own, CHECKER: checked}

    async def _own(self, judge: AnswerJudge, completeness: float) -> Judgement:
        weights = self.settings
        text = said(self._final) if self._final is not None else ""
        answer = tagged(text, "answer")
        planned = plan_overlap(self._plan or [], self._gold_plan)
        extra = (
            Component("completeness", completeness, weights.completeness),
            Component("plan", planned, weights.plan if self._gold_plan else 0.0),
        )
        if answer is None:
            parts = (Component("format", weights.malformed), *extra)
            return Judgement.composed("unparsed", parts, explanation="no answer in its tags")
        answer = _without_ids(answer, self.evidence.shown)
        result = await judge.answer(answer, self._right)
        score, cited = score_of(result), 0.0
        if weights.citations and score > 0:
            cited = await self._cited(judge, text)
        share = 1 - weights.citations + weights.citations * cited
        verdict = result.judgement.verdict if result.judgement is not None else "unparsed"
        return Judgement.composed(
            verdict,
            (Component("answer", score, share), Component("citations", cited, 0.0), *extra),
            extracted_answer=answer,
        )

    async def _cited(self, judge: AnswerJudge, text: str) -> float:
        shown = self.evidence.shown
        cited = cited_ids(text, shown)
        if not cited or not set(cited) <= set(shown):
            return 0.0
        gold = [one for one in cited if await judge.holds(shown[one], self._right)]
        return await judge.cites(text, shown, gold)


def plan_of(row: Row) -> list[str]:
    """A row's right sub-questions; none where it has none.

    Raises:
        ValueError: they are no list of texts.
    """
    plan = row.get("plan", ())
    if isinstance(plan, str) or not isinstance(plan, Sequence):
        raise ValueError("the row's plan is no list of questions")
    if not all(isinstance(one, str) and one.strip() for one in plan):
        raise ValueError("the row's plan is no list of questions")
    return list(plan)


def _without_ids(answer: str, shown: Mapping[str, str]) -> str:
    """An answer without citations of what was shown, unless they are all of it."""
    rest = answer
    for one in cited_ids(answer, shown):
        if one in shown:
            rest = rest.replace(f"[{one}]", " ")
    return rest.strip() or answer


def first_document(path: str) -> tuple[str, str, str]:
    """The first document's id, words that find it, and words that it holds in a row."""
    if not path:
        raise ConfigError("name the corpus: a file of {id, title, text}, one a line (corpus)")
    document = next(iter(documents_of(Path(path))))
    words = document.text.split()
    held = " ".join(words[:3])
    if not any(one.isalnum() for one in held):
        held = " ".join(words[:30])
    return document.id, f"{document.title} {document.text}"[:200].strip(), held
