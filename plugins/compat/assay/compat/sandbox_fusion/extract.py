"""Which code of a completion SandboxFusion's `/submit` takes. Pure.

The rules are the peer's own, so that rewards stay what they were; this project's are in
`assay.reward_server.verifiers.code_text`. A block is fenced by three backticks, and one that is
never closed reaches to the end; without fences, top-level functions and classes are Python, and
statements that begin like queries are SQL. The best kind wins, then the first block in the
language, then the first. Linear in the text.

This file needs the standard library only, and its source travels: a caller's own logic of
extraction runs beside it in the sandbox (`custom`), never in this process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FENCED, INCOMPLETE, HEURISTIC = 30, 20, 10
TYPES = {FENCED: "fenced", INCOMPLETE: "incomplete_fenced", HEURISTIC: "heuristic"}

_FENCE = "```"
_QUERY = re.compile(r"\s*(?:select|with\s[^\n]+as)[^;]*", re.IGNORECASE)
_TAGS = {
    "python": "python Python py Python3 python3 PY",
    "cpp": "cpp c++ C++ Cpp CPP",
    "c": "c C",
    "nodejs": "Javascript JavaScript JS js javascript",
    "go": "go Go",
    "java": "java Java",
    "csharp": "csharp c# C#",
    "bash": "bash Bash BASH sh shell",
    "typescript": "typescript",
    "rust": "rust Rust rs",
    "sql": "sql SQL Sql",
    "php": "php PHP",
    "html": "html Html HTML",
}
_HEADS = ("import", "from", "#")
_LANGUAGES = {tag: language for language, tags in _TAGS.items() for tag in tags.split()}


@dataclass
class CodeBlock:
    """A piece of code that may be the answer.

    Attributes:
        priority: how sure it is; the greatest wins.
        code: the code.
        language: the peer's name of its language; empty for unknown.
    """

    priority: int
    code: str
    language: str = ""


def extract_fenced_code(completion: str) -> list[CodeBlock]:
    """The blocks between fences, in order; the closing fence begins its line."""
    blocks: list[CodeBlock] = []
    opening = completion.find(_FENCE)
    while opening >= 0:
        start = completion.find("\n", opening) + 1
        if not start:
            break
        end, behind = _closing(completion, start)
        if end < 0:
            break
        blocks.append(_block(FENCED, completion[opening + 3 : start], completion[start:end]))
        opening = completion.find(_FENCE, behind)
    return blocks


def _closing(text: str, start: int) -> tuple[int, int]:
    """Where the block that begins at `start` ends, and where its fence does; -1 for nowhere."""
    fence = text.find(_FENCE, start)
    while fence >= 0:
        blank = fence
        while blank > start and text[blank - 1].isspace():
            blank -= 1
        end = text.find("\n", blank, fence)
        if end >= 0:
            return end, fence + 3
        fence = text.find(_FENCE, fence + 1)
    return -1, -1


def extract_incomplete_fenced_code(completion: str) -> list[CodeBlock]:
    """What follows the first fence, to the end."""
    opening = completion.find(_FENCE)
    start = completion.find("\n", opening) + 1 if opening >= 0 else 0
    if not start:
        return []
    return [_block(INCOMPLETE, completion[opening + 3 : start], completion[start:])]


def extract_heuristic_code(completion: str, language: str = "") -> list[CodeBlock]:
    """What looks like code of the language, in a text without fences."""
    lines = [line for line in completion.split("\n") if line.strip()]
    if language == "python":
        found = _definitions(lines)
    elif language == "sql":
        found = _queries(lines)
    elif language == "bash":
        found = ["\n".join(lines) + "\n"]
    else:
        found = []
    return [CodeBlock(HEURISTIC, code, language) for code in found]


def _definitions(lines: list[str]) -> list[str]:
    found: list[str] = []
    head: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if not line.startswith(("def ", "class ")):
            if any(line.startswith(word) and line != word for word in _HEADS):
                head.append(line)
            else:
                head = []
            continue
        body: list[str] = []
        while index < len(lines) and lines[index][0].isspace():
            body.append(lines[index])
            index += 1
        if body:
            found.append("\n".join([*head, line, *body]) + "\n")
        head = []
    return found


def _queries(lines: list[str]) -> list[str]:
    text = "\n".join(lines) + "\n"
    found: list[str] = []
    start = 0
    while 0 <= start < len(text):
        match = _QUERY.match(text, start)
        if match:
            found.append(match.group())
        start = text.find("\n", match.end() if match else start) + 1 or -1
    return found


def candidates(completion: str, language: str) -> list[CodeBlock]:
    """Every block that the completion may hold, the caller's own logic apart."""
    return [
        *extract_fenced_code(completion),
        *extract_heuristic_code(completion, language),
        *extract_incomplete_fenced_code(completion),
    ]


def choose(blocks: list[CodeBlock], language: str) -> tuple[str, str | None]:
    """The code to take, and how it was found.

    "fenced", "incomplete_fenced", "heuristic" or "empty"; None for the caller's own logic.
    """
    if not blocks:
        return "", "empty"
    best = max(block.priority for block in blocks)
    finalists = [block for block in blocks if block.priority == best]
    chosen = next((block for block in finalists if block.language == language), finalists[0])
    return chosen.code, TYPES.get(best)


def first_block(completion: str, language: str) -> tuple[str, str]:
    """The first block of the best kind, without what stands behind the functions.

    So the peer reads answers to MBPP and HumanEval: an unclosed block counts only where none is
    closed, a heuristic one only where there is neither; `main` and examples are cut off.
    """
    blocks = (
        extract_fenced_code(completion)
        or extract_incomplete_fenced_code(completion)
        or extract_heuristic_code(completion, language)
    )
    if not blocks:
        return "", "empty"
    code = blocks[0].code.replace("\r", "")
    ends = ["# Example usage"]
    if language == "python":
        ends.append('if __name__ == "__main__":')
    for end in ends:
        if end in code:
            code = code[: code.index(end)].strip()
    return code, TYPES[blocks[0].priority]


def _block(priority: int, tag: str, code: str) -> CodeBlock:
    return CodeBlock(priority, code, _LANGUAGES.get(tag.strip(), ""))
