"""Fenced blocks of a chat response. Pure; linear in the text.

A fenced block opens with three or more backticks or tildes at the start of a line, behind any
indentation, and closes with as many or more of the same; the indentation of the opening is taken
off its lines. A block that is never closed reaches to the end: the response was cut, or the model
forgot.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^\r\n]*)")
_TAG = re.compile(r"[^\s,{}=]+")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        tag: its language tag, lower case; empty for none.
        code: its content.
        closed: it has a closing fence.
    """

    tag: str
    code: str
    closed: bool = True


def fenced_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a text that hold something, in order."""
    blocks: list[Block] = []
    opening: re.Match[str] | None = None
    lines: list[str] = []
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if opening is None:
            # Backticks behind the opening ones make it code inside a line of prose.
            if found and not (found["fence"][0] == "`" and "`" in found["info"]):
                opening, lines = found, []
        elif found and _closes(found, opening):
            blocks.append(_block(opening, lines, closed=True))
            opening = None
        else:
            lines.append(line)
    if opening is not None:
        blocks.append(_block(opening, lines, closed=False))
    return tuple(block for block in blocks if block.code.strip())


def _closes(found: re.Match[str], opening: re.Match[str]) -> bool:
    same = found["fence"][0] == opening["fence"][0]
    return same and len(found["fence"]) >= len(opening["fence"]) and not found["info"].strip()


def _block(opening: re.Match[str], lines: list[str], *, closed: bool) -> Block:
    indent = opening.start("fence")
    tag = _TAG.search(opening["info"])
    code = "".join(_dedented(line, indent) for line in lines)
    return Block(tag.group().lstrip(".").lower() if tag else "", code, closed)


def _dedented(line: str, indent: int) -> str:
    lead = len(line) - len(line.lstrip(" \t"))
    return line[min(lead, indent) :]
