"""Citations in a text: their grammars, and where they stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from assay.reward_server import UNUSABLE_REFERENCE, Unjudgeable

_ID = "(?P<ids>{ids})"
_GRAMMARS = {
    "ascii_brackets": rf"\[{_ID}\]",
    "cite_xml": f"<cite>{_ID}</cite>",
    "claim_wrap_xml": rf'<cite index="{_ID}">(?P<claim>(?s:.*?))</cite>',
    "fullwidth_brackets": f"【{_ID}】",
    "ref_colon": rf"\[ref:{_ID}\]",
    "double_angle": f"<<{_ID}>>",
    "web_brackets": rf"\[web:{_ID}\]",
    "paren_part": rf"\({_ID}\)",
    "markdown_footnote": rf"\[\^{_ID}\]",
    "curly_double": rf"\{{\{{{_ID}\}}\}}",
    "angle_pipe": rf"<ref\|{_ID}>",
}
GRAMMARS = tuple(_GRAMMARS)
"""The grammars of NeMo Gym's citation_if, by its names."""

_LISTED = frozenset(("cite_xml", "claim_wrap_xml"))
_TAGGED = (re.compile(r"<cite\b", re.IGNORECASE), re.compile(r"</cite\s*>", re.IGNORECASE))
_SCHEME = re.compile(r"[A-Za-z]+[_:#-]")
_MAX_PATTERN_CHARS = 200


@dataclass(frozen=True, slots=True)
class Citation:
    """One citation: where it stands, the ids in it, and where the claim inside of it stands."""

    start: int
    end: int
    ids: tuple[str, ...]
    claim: tuple[int, int] = (0, 0)


class Grammar:
    """How citations are written.

    Args:
        name: one of GRAMMARS.
        ids: all ids that exist.
        pattern: a pattern of RE2 that ids match; empty for the scheme of `ids`: numbers, a word
            that all begin with ("citation_27bx"), or else any word.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for another name, or a pattern that is none.
    """

    def __init__(self, name: str, ids: Sequence[str], pattern: str = "") -> None:
        import re2  # noqa: PLC0415 - 11 ms to load

        if name not in _GRAMMARS:
            known = ", ".join(GRAMMARS)
            raise _unusable(f"names the grammar {name[:40]!r}; there are {known}")
        if len(pattern) > _MAX_PATTERN_CHARS:
            raise _unusable(f"has an 'id_regex' of more than {_MAX_PATTERN_CHARS} characters")
        numbers = not pattern and all(one.isdecimal() for one in ids)
        scheme = "" if numbers else _scheme(ids)
        if not pattern:
            pattern = r"\d+" if numbers else rf"{scheme}[A-Za-z0-9_:.-]+"
        gap = " *, *" if numbers else ","
        listed = rf"(?:{pattern})(?:{gap}(?:{pattern}))*"
        one = listed if numbers or name in _LISTED else f"(?:{pattern})"
        options = re2.Options()
        options.log_errors = False
        options.max_mem = 1 << 20
        try:
            self._pattern: Any = re2.compile(_GRAMMARS[name].replace("{ids}", one), options)
        except re2.error as error:
            raise _unusable(f"has an 'id_regex' that RE2 does not take: {error}") from None
        self._loose = re.compile(rf"{scheme}[A-Za-z0-9_:]+", re.IGNORECASE) if scheme else None
        self._claim = self._pattern.groupindex.get("claim", 0)
        self._name = name

    def find(self, text: str) -> list[Citation]:
        """The well-formed citations of a text, from the left."""
        found = []
        for match in self._pattern.finditer(text):
            start, end = match.span()
            if self._name == "ascii_brackets" and text[end : end + 1] == "(":
                continue  # a link
            claim = match.span(self._claim) if self._claim else (0, 0)
            if self._claim and not text[slice(*claim)].strip():
                continue
            ids = tuple(part.strip() for part in match.group("ids").split(","))
            found.append(Citation(start, end, ids, claim))
        return found

    def is_botched(self, text: str, citations: Sequence[Citation]) -> bool:
        """Whether an id, or a tag of the grammar, stands outside of well-formed citations."""
        if self._loose is not None and self._loose.search(without(text, citations)):
            return True
        if self._name not in _LISTED:
            return False
        return any(len(tag.findall(text)) != len(citations) for tag in _TAGGED)

    def is_tried(self, text: str) -> bool:
        """Whether a text holds anything like a citation."""
        if self._loose is not None and self._loose.search(text):
            return True
        tagged = self._name in _LISTED and _TAGGED[0].search(text) is not None
        return tagged or bool(self.find(text))


def without(text: str, citations: Sequence[Citation], *, mark: str = " ") -> str:
    """The text with each citation replaced, but for the claim inside of it."""
    parts, at = [], 0
    for one in citations:
        begin, end = one.claim
        parts += [text[at : one.start], mark, text[begin:end] if end else ""]
        at = one.end
    return "".join([*parts, text[at:]])


def _scheme(ids: Sequence[str]) -> str:
    """The word that all ids begin with, as a pattern; empty for none."""
    found = {match.group() if (match := _SCHEME.match(one)) else "" for one in ids}
    return re.escape(found.pop()) if len(found) == 1 else ""


def _unusable(what: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference of citations {what}")
