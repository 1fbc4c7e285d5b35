"""How an agent's conversation goes on: all of it, behind a summary, or from a memory alone.

SUPO (arXiv 2510.06727) and MemSearcher (arXiv 2511.02805), but: what was read counts as one token
for four characters; a conversation past its limit keeps its last answer until the summary is
written; a turn without a memory keeps the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from assay.environments.shipped.answers import said, tagged, without_tags
from assay.environments.types import EpisodeMessage, Observation, Reply

ContextKind = Literal["history", "summary", "memory"]
CONTEXTS = ("history", "summary", "memory")
CONTROL = ("question", "summary", "memory", "observation", "evidence", "answer")
"""Tags that environments here give a meaning; no summary and no memory keeps them."""

_CHARS_A_TOKEN = 4
_ASK = (
    "This conversation ends here. Write between <summary> and </summary> all that is needed to go "
    "on: what is known and from which documents, and what is still to be found. Call no tool."
)
_REMEMBER = (
    "You will not see this turn again. Write between <memory> and </memory> what of all this you "
    "need to know, in every turn, beside your call or answer."
)
_NONE = "(nothing yet)"


@dataclass(frozen=True, slots=True)
class ContextLimits:
    """When contexts change: past tokens or turns of a conversation; 0 for no limit.

    `most_chars` cuts a summary or a memory.
    """

    tokens: int = 4096
    turns: int = 0
    most_chars: int = 4000


class AgentContext:
    """The conversation of one agent with one question.

    Attributes:
        is_summarising: the turn that is due is a summary, and no tool may be called.
        kept: the summary or the memory.
    """

    def __init__(
        self,
        kind: ContextKind,
        limits: ContextLimits,
        system: str,
        question: str,
        *,
        agent: str,
        tools: tuple[str, ...] | None = None,
    ) -> None:
        self.is_summarising = False
        self.kept = ""
        self._kind = kind
        self._limits = limits
        self._system = system + (f"\n\n{_REMEMBER}" if kind == "memory" else "")
        self._question = question
        self._agent = agent
        self._tools = tools
        self._number = 0
        self._tokens = self._turns = 0

    def begin(self) -> Observation:
        """The first observation."""
        return self._anew("")

    def follow(self, turn: Reply, answers: tuple[EpisodeMessage, ...]) -> Observation:
        """What follows a turn and what came of it, or the summary that was asked for."""
        if self._kind == "memory":
            self._keep(tagged(said(turn), "memory"))
            return self._anew("\n\n".join(one.content for one in answers))
        if self.is_summarising:
            self.is_summarising = False
            self._keep(tagged(said(turn), "summary") or turn.answer.strip())
            return self._anew("")
        self._turns += 1
        self._tokens += turn.tokens or len(turn.text) // _CHARS_A_TOKEN
        self._tokens += sum(len(one.content) for one in answers) // _CHARS_A_TOKEN
        if self._kind == "summary" and self._is_long():
            self.is_summarising = True
            answers = (*answers, EpisodeMessage("user", _ASK))
        return Observation(answers, self._agent, self._context)

    @property
    def _context(self) -> str:
        return f"{self._agent}.{self._number}" if self._number > 1 else ""

    def _is_long(self) -> bool:
        limits = self._limits
        return (0 < limits.tokens < self._tokens) or (0 < limits.turns <= self._turns)

    def _keep(self, text: str | None) -> None:
        if text:
            self.kept = without_tags(text, *CONTROL)[: self._limits.most_chars]

    def _anew(self, observed: str) -> Observation:
        parts = [f"<question>\n{self._question}\n</question>"]
        if self._kind == "memory":
            parts.append(f"<memory>\n{self.kept or _NONE}\n</memory>")
        elif self.kept:
            parts.append(f"<summary>\n{self.kept}\n</summary>")
        if observed:
            parts.append(f"<observation>\n{without_tags(observed, *CONTROL)}\n</observation>")
        text = "\n\n".join(parts) if len(parts) > 1 else self._question
        messages = (EpisodeMessage("system", self._system), EpisodeMessage("user", text))
        self._number += 1
        self._turns = 0
        self._tokens = (len(self._system) + len(text)) // _CHARS_A_TOKEN
        return Observation(messages, self._agent, self._context, tools=self._tools)
