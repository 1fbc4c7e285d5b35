r"""The format `code`: a fenced block of Python is a call of the tool `python` (ReTool, SimpleTIR).

    ```python
    print(1 + 2)
    ```

    ```output
    3
    ```

The turn ends with the first block. An answer is a text without one. Sources: ReTool, arXiv
2504.11536; SimpleTIR, arXiv 2509.02479.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from assay.environments.formats.replies import ends_with, reply_of
from assay.environments.formats.tagged import results_as_words
from assay.environments.types import EpisodeMessage, Reply
from assay.kit.fences import fenced_blocks
from assay.kit.tool_calls import ToolCall
from assay.kit.tool_calls.dialects import acting_part, turn_part

TOOL, ARGUMENT = "python", "code"
_HOW = """You can run Python. Write the program in a block

```python
print(1 + 2)
```

and what it prints follows in a block marked `output`. You may run programs again and again; when
you know the answer, write it without a program.
"""
_TAGS = frozenset({"python", "py", "python3"})
_RUN = re.compile(r"`{3,}|~{3,}")
_BLOCK = re.compile(r"^[ \t]*```(?:python3?|py)[ \t]*$", re.MULTILINE)


class CodeFormat:
    """See the module."""

    name = "code"
    native = False
    offers = False
    stops: tuple[str, ...] = ("\n```\n",)
    tags: tuple[str, ...] = ("```python", "```output", "```")

    def system(self, tools: Sequence[dict[str, Any]]) -> str:
        """See Format."""
        return _HOW if tools else ""

    def read(self, text: str, *, truncated: bool = False) -> Reply:
        """See Format; the first block that is Python is the call."""
        acts = acting_part(text)
        thinking = acts is None
        if acts is None and not truncated and ends_with(text, self.stops):
            acts = turn_part(text)
        if acts is None:
            return reply_of(text, (), "", truncated=truncated)
        for block in fenced_blocks(acts):
            if block.tag in _TAGS and (block.closed or not truncated):
                call = ToolCall(TOOL, {ARGUMENT: block.code})
                answer = "" if thinking else _before(acts)
                return reply_of(text, (call,), answer, truncated=truncated)
        answer = "" if thinking else acts.strip()
        return reply_of(text, (), answer, truncated=truncated)

    def shown(self, messages: Sequence[EpisodeMessage]) -> list[EpisodeMessage]:
        """See Format; the fence is longer than any in the result."""
        return results_as_words(messages, _result, _call)


def _before(text: str) -> str:
    found = _BLOCK.search(text)
    return text[: found.start()].strip() if found else ""


def _result(message: EpisodeMessage) -> str:
    longest = max((len(one[0]) for one in _RUN.finditer(message.content)), default=0)
    fence = "`" * max(3, longest + 1)
    end = "" if message.content.endswith("\n") else "\n"
    return f"{fence}output\n{message.content}{end}{fence}"


def _call(call: ToolCall) -> str:
    given = call.arguments or {}
    return f"```python\n{str(given.get(ARGUMENT, '')).rstrip()}\n```"
