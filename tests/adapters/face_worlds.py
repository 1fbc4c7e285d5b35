"""An environment for the tests of faces: sums, with a tool that can break."""

from __future__ import annotations

from typing import Any

from assay.environments import Environment, ToolResult, tool


class Sums(Environment):
    """A sum to be had from a tool."""

    name = "sums"
    closed = 0

    def reset(self, row: Any) -> str:
        self.total = row["a"] + row["b"]
        return f"What is {row['a']} + {row['b']}?"

    @tool
    def add(self, a: int, b: int) -> ToolResult:
        """Adds two numbers.

        Args:
            a: the first.
            b: the second.
        """
        if a == 13:
            raise OSError("the adder is broken")
        return ToolResult(str(a + b), reward=0.25 if a + b == self.total else None)

    def reward(self) -> float:
        if self.last.answer == "judge":
            raise OSError("the judge is broken")
        return float(str(self.total) in self.last.answer)

    def close(self) -> None:
        type(self).closed += 1


SUMS = f"{__file__}:Sums"
CALL = '<tool_call>\n{{"name": "add", "arguments": {{"a": {0}, "b": {1}}}}}\n</tool_call>'
