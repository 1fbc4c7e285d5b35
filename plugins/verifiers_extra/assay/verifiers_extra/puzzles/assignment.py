"""`assignment`: who is what: knights and knaves, zebra puzzles, and other tables of values.

The reference is the solution, in one of these forms:

 - knights and knaves: `{"Zoey": "knave", "Oliver": "knight"}`; the text "(1) Zoey is a knave",
   a line each, of K&K (arXiv 2410.23123), or Logic-RL's `{"solution_text_format": text}`;
 - zebra: ZebraLogicBench's `{"header": ["House", "Name", ...], "rows": [["1", "Eric", ...], ...]}`
   (arXiv 2502.01100), or `{"House 1": {"Name": "Eric", ...}, ...}`; each may be under "solution".

The response is read in the last `<answer>` element after the thought, or in all that follows it:
the last JSON object (bare, or under "solution" or "answer"), else the last Markdown table whose
first column names the rows, else sentences "NAME is a ROLE" or "NAME: ROLE" for the names of the
reference. Outside an `<answer>` sentences count in the last paragraph that has some, and not where
it supposes ("if", "or"). Case, blanks and marks around a value do not count.

One place, one guess: a name that gets two values has none, and what is not named is wrong.

The reward is `solved`, or `cells`, ZebraLogic's cell accuracy. What a policy could game: `cells`
pays for guessing, a half for knights and knaves; train on `solved`.

Known limits. The solution is believed to be the only one; the puzzle's clues are not checked. The
words of roles are knight and knave and those of the reference; "a liar" is no knave.

Differences from Logic-RL's grader: no reward for the form; roles said twice alike, names besides,
bold roles and colons are right. From ZebraLogic's: a list of several values is wrong, where it
takes the first; keys may have another case. Measured: no other on 2,000 responses each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from assay.kit.json_text import last_value, read_json
from assay.reward_server import (
    UNUSABLE_REFERENCE,
    Component,
    JsonValue,
    Judgement,
    Unjudgeable,
    VerifierItem,
    verifier,
)
from assay.verifiers_extra.geometry.reading import answer_region

Cells = dict[tuple[str, str], str | None]
"""The value of each row's attribute, in normal form; None for one that contradicts itself."""

MAX_CELLS = 400
_SHOWN_CHARS = 500
_VALUE_CHARS = 100
_ROLES = ("knight", "knave")
_WRAPPED = ("solution", "answer")
_LINE_OF_SOLUTION = re.compile(
    r"\(?\d{0,3}[).]?\s{0,4}([^\W\d_][\w .'-]{0,60}?) is an? (\w{1,30})\.?"
)
_PARAGRAPH = re.compile(r"\n\s*\n")
_SUPPOSING = re.compile(r"\b(?:if|suppose|assume|assuming|or|not|either)\b", re.IGNORECASE)
_ROW = re.compile(r"[ \t]*\|(.{0,2000})\|[ \t]*")
_DASHES = re.compile(r"[\s|:\-]+")


@verifier(
    "assignment",
    tasks=("knights-and-knaves", "zebra"),
    verdicts=("correct", "incorrect", "unparsed"),
    isolation="inline",
)
def assignment(
    item: VerifierItem,
    *,
    reward: Annotated[
        Literal["solved", "cells"], "1 when every cell is right, or the share of right cells."
    ] = "solved",
) -> Judgement:
    """Every name has the value that the reference gives it, in a list or a table.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for a reference that is no solution.
    """
    wanted = _wanted(_document(item))
    found = _read(item.response(), wanted)
    if not found:
        text = "the answer holds no JSON object, table or list with the names of the reference"
        return Judgement.composed("unparsed", (Component("solved", 0.0),), explanation=text)
    right = sum(found.get(cell) == value for cell, value in wanted.items())
    solved = right == len(wanted)
    score = float(solved) if reward == "solved" else right / len(wanted)
    return Judgement.composed(
        "correct" if solved else "incorrect",
        (Component(reward, score),),
        extracted_answer=_shown(found),
        explanation=f"{right} of {len(wanted)} are right",
    )


def normal(text: str) -> str:
    """A name or value in the form in which it is compared."""
    return " ".join(text[:_VALUE_CHARS].casefold().replace("_", " ").split()).strip("*`\"'.,:;() ")


def _row_name(text: str) -> str:
    """The name of a row; that of "House 2" is "2"."""
    return normal(text).removeprefix("house ").strip()


# --- The reference --------------------------------------------------------------------------------


def _document(item: VerifierItem) -> JsonValue:
    if item.data is None and len(item.references) == 1 and "{" not in item.references[0][:1]:
        return item.references[0]
    return item.document()


def _wanted(document: JsonValue) -> Cells:
    if isinstance(document, dict) and "solution_text_format" in document:
        document = document["solution_text_format"]
    if isinstance(document, str):
        lines = [line for line in document.splitlines() if line.strip()]
        matches = [_LINE_OF_SOLUTION.fullmatch(line.strip()) for line in lines]
        if not lines or not all(matches):
            raise _unusable("each line of the text must be like '(1) Zoey is a knave'")
        cells = _cells({match[1]: match[2] for match in matches if match})
    else:
        cells = _cells(document)
    if not 0 < len(cells) <= MAX_CELLS or not all(cells.values()):
        raise _unusable(f"it must give 1 to {MAX_CELLS} values, each once and none blank")
    return cells


def _cells(document: JsonValue) -> Cells:
    """The cells of a solution in JSON; empty for what is none."""
    if isinstance(document, list) and len(document) == 1:
        document = document[0]
    if not isinstance(document, dict):
        return {}
    for key in _WRAPPED:
        if isinstance(document.get(key), dict):
            return _cells(document[key])
    header, rows = document.get("header"), document.get("rows")
    if isinstance(header, list) and isinstance(rows, list):
        return _of_table([header, *(row for row in rows if isinstance(row, list))])
    found: list[tuple[str, str, JsonValue]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            found += [(_row_name(name), normal(key), cell) for key, cell in value.items()]
        else:
            found.append((_row_name(name), "", value))
    return _gathered(found)


def _of_table(lines: Iterable[list[JsonValue]]) -> Cells:
    """The cells of a table with a header, whose first column names the rows."""
    header, *rows = lines
    names = [normal(str(name)) for name in header]
    return _gathered(
        (_row_name(str(row[0])), name, cell)
        for row in rows
        if len(row) == len(names) > 1
        for name, cell in zip(names[1:], row[1:], strict=True)
    )


def _gathered(cells: Iterable[tuple[str, str, JsonValue]]) -> Cells:
    found: Cells = {}
    for row, name, value in cells:
        only = value[0] if isinstance(value, list) and len(value) == 1 else value
        text = normal(str(only)) if isinstance(only, str | int) else None
        known = found.setdefault((row, name), text)
        if known != text:
            found[row, name] = None
    return found


# --- The response ---------------------------------------------------------------------------------


def _read(response: str, wanted: Mapping[tuple[str, str], str | None]) -> Cells:
    """The cells of a response; empty where it names none of the reference's."""
    tagged = answer_region(response, strict=True)
    region = tagged if tagged is not None else answer_region(response)
    if not region:
        return {}
    flat = not any(name for _, name in wanted)
    if (cells := _of_json(region)).keys() & wanted.keys():
        return cells
    if (cells := _of_markdown(region, flat=flat)).keys() & wanted.keys() or not flat:
        return cells
    roles = {*_ROLES, *filter(None, wanted.values())}
    return _of_sentences(region, [name for name, _ in wanted], roles, whole=tagged is not None)


def _of_json(region: str) -> Cells:
    """The cells of the last JSON object; line breaks may stand in its texts."""
    text = last_value(region, "{") or last_value(" ".join(region.split()), "{")
    return {} if text is None else _cells(read_json(text))


def _of_markdown(region: str, *, flat: bool) -> Cells:
    """The cells of the last table; one of two columns gives each name its value."""
    table: list[list[JsonValue]] = []
    for line in reversed(region.splitlines()):
        row = _ROW.fullmatch(line)
        if row is None and table:
            break
        if row is not None and not _DASHES.fullmatch(row[1]):
            table.insert(0, [cell.strip() for cell in row[1].split("|")])
    if len(table) < 2:
        return {}
    if flat:
        pairs = [row for row in table if len(row) == 2]
        return _gathered((_row_name(str(row[0])), "", row[1]) for row in pairs)
    return _of_table(table)


def _of_sentences(region: str, names: Iterable[str], roles: Iterable[str], *, whole: bool) -> Cells:
    """What sentences say of the names: of all of them, or of those of the last paragraph."""
    statement = re.compile(
        rf"\b({_any_of(names)})\b\W{{0,6}}(?:is|:|=|-|\u2192)\W{{0,4}}(?:an? )?\W{{0,4}}"
        rf"({_any_of(roles)})\b",
        re.IGNORECASE,
    )
    parts = [region] if whole else reversed(_PARAGRAPH.split(region))
    for part in parts:
        said = [(_row_name(found[1]), "", found[2]) for found in statement.finditer(part)]
        if said:
            return {} if not whole and _SUPPOSING.search(part) else _gathered(said)
    return {}


def _any_of(words: Iterable[str]) -> str:
    """A pattern for any of these words, longer ones first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _shown(cells: Cells) -> str:
    lines = (f"{row} {name}".strip() + f": {value}" for (row, name), value in cells.items())
    return "; ".join(lines)[:_SHOWN_CHARS]


def _unusable(trouble: str) -> Unjudgeable:
    return Unjudgeable(UNUSABLE_REFERENCE, f"the reference is no solution: {trouble}")
