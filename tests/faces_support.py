"""Small environments for the tests of faces: sums with a tool, and each way to break."""

from __future__ import annotations

from typing import Any, ClassVar

from assay.clients import Item, Result
from assay.environments import Environment, ToolError, ToolResult, tool


class Sums(Environment):
    """The policy adds `row["terms"]`; it may call `add`. What a row names under `break` breaks."""

    closed: ClassVar[list[str]] = []
    begun: ClassVar[int] = 0

    def reset(self, row: Any) -> str:
        Sums.begun += 1
        self.total = sum(row["terms"])
        self._break("reset")
        return f"{row['prompt']} Add {' and '.join(map(str, row['terms']))}."

    @tool
    def add(self, a: int, b: int = 0) -> ToolResult:
        """Adds two numbers.

        Args:
            a: the first.
            b: the second.
        """
        self._break("add")
        if abs(a) > 1000:
            raise ToolError("the numbers are too large")
        return ToolResult(str(a + b), reward=0.25, done=bool(self.row.get("done")))

    @tool
    def echo(self, text: str) -> str:
        """Says it again.

        Args:
            text: what to say.
        """
        return text

    def reward(self) -> Any:
        self._break("reward")
        if self.row.get("judged"):
            return self.judged(self.last.answer, reference=str(self.total))
        return 1.0 if str(self.total) in self.last.answer else 0.0

    def close(self) -> None:
        self.closed.append(str(self.row.get("name", "")))

    def _break(self, where: str) -> None:
        if self.row.get("break") == where:
            raise RuntimeError(f"{where} is broken")


class Riddle(Environment):
    """Asks until the policy says the word, or for three turns."""

    def reset(self, row: Any) -> str:
        self.word = str(row["word"])
        self.asked = 0
        return "Say the word."

    def turn(self, turn: Any) -> str | None:
        self.asked += 1
        return None if self.word in turn.text or self.asked == 3 else f"No, not {turn.text!r}."

    def reward(self) -> float:
        return float(self.word in self.last.text)


class Echo:
    """Services that find every answer right that is the reference."""

    async def score(self, item: Item) -> Result:
        from assay.clients import Judgement

        right = item.response == item.reference
        return Result("", Judgement(float(right), "correct" if right else "incorrect"))
