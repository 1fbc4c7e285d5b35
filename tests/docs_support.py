"""The pages of the documentation, taken apart: links, anchors, code blocks, commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from notebooks import as_page

FENCE = re.compile(r"^( *)```([\w-]*)\n(.*?)^\1```\s*$", re.MULTILINE | re.DOTALL)
_RUN = re.compile(r"<!-- run(?: with (\w+))? -->$")
_LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
_CONTROL = {"&", "&&", "|", ";", ">", "<"}
_SHELLS = {"", "sh", "bash", "console"}
_ASSAY = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(assay|python -m (?:assay\.\w+|bench)|make) ")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block.

    Attributes:
        page: where it stands, relative to the repository.
        line: its first line.
        language: what its fence says.
        text: what is in it.
        runs: marked to be run against services.
        needs: what it imports that our own environment does not have: it is run in that of
            `make test-adapters`. Empty for none.
        prints: the text block that follows it, if it is marked to be run.
    """

    page: str
    line: int
    language: str
    text: str
    runs: bool = False
    needs: str = ""
    prints: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@dataclass(frozen=True, slots=True)
class Link:
    """A link to a file of the repository: path and anchor, as written."""

    page: str
    path: str
    anchor: str


def pages(repository: Path) -> list[Path]:
    """Everything that is documentation."""
    found = sorted((repository / "docs").rglob("*.md"))
    found += sorted((repository / "docs").rglob("*.ipynb"))
    found += [repository / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return found + sorted(repository.glob("*/README.md"))


def text_of(page: Path) -> str:
    """A page as Markdown, a notebook as the site shows it."""
    return as_page(page) if page.suffix == ".ipynb" else page.read_text(encoding="utf-8")


def blocks(repository: Path) -> Iterator[Block]:
    """The fenced blocks of all pages."""
    for page in pages(repository):
        text = text_of(page)
        fences = list(FENCE.finditer(text))
        for number, fence in enumerate(fences):
            before = text[: fence.start()].rstrip()
            mark = _RUN.search(before)
            runs, needs = mark is not None, (mark[1] or "") if mark else ""
            following = fences[number + 1] if number + 1 < len(fences) else None
            beside = following is not None and not text[fence.end() : following.start()].strip()
            prints = (
                following[3] if runs and beside and following and following[2] == "text" else None
            )
            name = str(page.relative_to(repository))
            line = text.count("\n", 0, fence.start()) + 1
            yield Block(name, line, fence[2], _dedented(fence), runs, needs, prints)


def block_of(page: str, text: str) -> str:
    """The one block of a page that holds a text, without the lines that print at its end."""
    repository = Path(__file__).resolve().parents[1]
    [found] = [one.text for one in blocks(repository) if one.page == page and text in one.text]
    return found.split("\nprint(")[0]


def _dedented(fence: re.Match[str]) -> str:
    return re.sub(rf"^{fence[1]}", "", fence[3], flags=re.MULTILINE)


def links(repository: Path) -> Iterator[Link]:
    """The links of all pages that lead to files; those to other hosts are left out."""
    for page in pages(repository):
        text = FENCE.sub("", text_of(page))
        text = re.sub(r"(`+)(?:(?!\1).)+?\1", "", text)
        for link in _LINK.finditer(text):
            if re.match(r"[a-z]+:", link[1]):
                continue
            path, _, anchor = link[1].partition("#")
            yield Link(str(page.relative_to(repository)), path, anchor)


def anchors(text: str) -> set[str]:
    """The anchors of a page: of its headings, as GitHub and the site make them, and its own."""
    found: dict[str, int] = {}
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", FENCE.sub("", text), re.MULTILINE):
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "")
        slug = re.sub(r"[^\w\- ]", "", bare.strip().lower()).replace(" ", "-")
        found[slug] = found.get(slug, 0) + 1
    own = set(re.findall(r'<a id="([^"]+)"></a>', FENCE.sub("", text)))
    return own | {
        f"{slug}-{n}" if n else slug for slug, times in found.items() for n in range(times)
    }


def commands(repository: Path) -> Iterator[tuple[Block, list[str]]]:
    """Commands of ours in the blocks for a shell, in words and without comments."""
    for block in blocks(repository):
        if block.language not in _SHELLS:
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            if _ASSAY.match(line):
                words = shlex.split(line.removeprefix("$ "), comments=True)
                words = list(takewhile(lambda word: word not in _CONTROL, words))
                words = [word for word in words if word != "..."]
                yield block, [words[0].removeprefix(".venv/bin/"), *words[1:]]
