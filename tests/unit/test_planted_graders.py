"""The planted graders are what their manifest says: each defect is there, the sound are sound."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from planted_graders import (
    generate,
    generate_fifth,
    generate_fourth,
    generate_second,
    generate_sixth,
    generate_third,
)

ROOM = Path(generate.__file__).parent
MANIFEST = tomllib.loads((ROOM / "manifest.toml").read_text(encoding="utf-8"))
GRADERS: list[dict[str, Any]] = MANIFEST["grader"]
PLANTED = [grader for grader in GRADERS if grader["defect"]]
SETS = {
    "second": generate_second.KINDS,
    "third": generate_third.KINDS,
    "fourth": generate_fourth.KINDS,
    "fifth": generate_fifth.KINDS,
    "sixth": generate_sixth.KINDS,
}
KINDS = {kind: made for kinds in (generate.KINDS, *SETS.values()) for kind, made in kinds.items()}
LATER = [grader for grader in PLANTED if grader.get("set") in SETS]
SOUND = [grader for grader in GRADERS if not grader["defect"]]
# Answers whose parts may come in any order.
PARTED_BY = {
    "members": ", ", "several": ", ", "arrows": "; ", "table": "\n", "parts": "\n",
    "entities": "; ", "dotenv": "\n", "system": ", ", "knights": ", ", "electrons": " ",
    "averages": ", ", "debts": "; ", "walk": ", ", "gantt": "; ",
}  # fmt: skip
METRES = {"mm": "0.001", "cm": "0.01", "m": "1", "km": "1000"}
SYNONYMS = {second: first for first, second in generate_third.NOUNS + generate_third.KINDLY}

Grader = Callable[[str, str], float]


@cache
def module(file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"planted_{Path(file).stem}", ROOM / file)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def function(grader: dict[str, Any]) -> Grader:
    found: Grader = getattr(module(grader["file"]), grader["function"])
    return found


def accepts(grader: dict[str, Any], response: str, reference: str) -> bool:
    score = function(grader)(response, reference)
    assert isinstance(score, float)
    assert 0.0 <= score <= 1.0
    return score >= 0.5


@cache
def rows(kind: str) -> tuple[tuple[str, str], ...]:
    text = (ROOM / MANIFEST["rows"][kind]["file"]).read_text(encoding="utf-8")
    read = [json.loads(line) for line in text.splitlines()]
    return tuple((row["prompt"], row["reference"]) for row in read)


def plain(kind: str, answer: str) -> str:
    return str(MANIFEST["rows"][kind]["plain"]).replace("{reference}", answer)


def named(grader: dict[str, Any]) -> str:
    return f"{Path(grader['file']).stem}-{grader['function']}"


def number(text: str) -> object:
    try:
        return Decimal(text.replace(",", "").removesuffix("%"))
    except InvalidOperation:
        return text


def values_of(expression: str) -> object:
    try:
        return [eval(expression, {"x": x}) for x in (-999, -3, 0, 1, 2, 7, 100, 999)]
    except ZeroDivisionError:
        return expression


def named_pages(answer: str) -> set[int]:
    ends = [run.split("-") for run in answer.split(", ")]
    return {page for run in ends for page in range(int(run[0]), int(run[-1]) + 1)}


def metres(answer: str) -> Decimal:
    value, unit = answer.split()
    return Decimal(value) * Decimal(METRES[unit])


def ends_swapped(answer: str) -> str:
    """B<A as A>B."""
    first, sign, second = re.fullmatch(r"(.)(\W+)(.)", answer).groups()  # type: ignore[union-attr]
    return f"{second}{sign.replace('<', '>')}{first}" if "<" in sign else answer


def in_a_box(answer: str) -> Fraction:
    if answer.startswith("\\frac"):
        top, bottom = answer.removeprefix("\\frac{").removesuffix("}").split("}{")
        return Fraction(int(top), int(bottom))
    return Fraction(answer)


MEANINGS: dict[str, Callable[[str], object]] = {
    "boxed": in_a_box,
    "oneliner": values_of,
    "derivative": lambda answer: values_of(answer.replace("^", "**")),
    "countdown": lambda answer: (eval(answer), sorted(re.findall(r"\d+", answer))),
    "pages": named_pages,
    "length": metres,
    "share": Fraction,
    "roots": lambda answer: set(answer.strip("{}").split(", ")),
    "translation": lambda answer: [SYNONYMS.get(word, word) for word in answer.split()],
    "boolean": lambda answer: [
        eval(answer, {"A": a, "B": b, "C": c}) & 1 for a, b, c in product([0, 1], repeat=3)
    ],
    "judge": ends_swapped,
    "reaction": lambda answer: [sorted(side.split(" + ")) for side in answer.split(" -> ")],
}


def meaning(kind: str, answer: str) -> object:
    """What an answer to this kind of question means; equal where two answers mean the same."""
    if kind in {"story", "number", "rate", "scale", "ledger"}:
        return number(answer)
    if kind in MEANINGS:
        return MEANINGS[kind](answer)
    if kind in {"record", "catalog", "settings"} and answer.startswith(("{", "[")):
        return json.dumps(json.loads(answer), sort_keys=True)
    if kind in PARTED_BY:
        return sorted(answer.split(PARTED_BY[kind]))
    return [line.split() for line in answer.splitlines()] if kind == "report" else answer


def test_the_manifest_and_the_files_name_the_same_graders() -> None:
    files = {path.name for path in ROOM.glob("*.py")} - {
        "generate.py",
        "generate_second.py",
        "generate_third.py",
        "generate_fourth.py",
        "generate_fifth.py",
        "generate_sixth.py",
    }
    written = {
        (file, name)
        for file in files
        for name, found in inspect.getmembers(module(file), inspect.isfunction)
        if list(inspect.signature(found).parameters) == ["response", "reference"]
    }
    assert Counter((grader["file"], grader["function"]) for grader in GRADERS) == Counter(written)
    assert {grader["rows"] for grader in SOUND} == {grader["rows"] for grader in PLANTED}
    assert {grader["depth"] for grader in PLANTED} == {"obvious", "class", "subtle"}
    assert {grader["kind"] for grader in SOUND} == {"sound"}
    assert all("witness_response" not in grader for grader in SOUND)


@pytest.mark.parametrize(
    ("which", "planted", "sound"),
    [
        ("second", 45, 25),
        ("third", 80, 60),
        ("fourth", 70, 40),
        ("fifth", 60, 38),
        ("sixth", 60, 44),
    ],
)
def test_a_later_set_is_large_and_of_kinds_of_its_own(which: str, planted: int, sound: int) -> None:
    of_set = [grader for grader in GRADERS if grader.get("set") == which]
    depths = Counter(grader["depth"] for grader in of_set if grader["defect"])
    earlier = [generate.KINDS, *(SETS[name] for name in SETS if name != which)]
    assert {grader["rows"] for grader in of_set} == set(SETS[which])
    assert not any(set(SETS[which]) & set(kinds) for kinds in earlier)
    assert len(KINDS) == len({grader["rows"] for grader in GRADERS})
    assert depths.total() >= planted
    assert min(depths.values()) * 5 >= depths.total()
    assert len(of_set) - depths.total() >= sound


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_rows_are_what_the_generator_makes(kind: str) -> None:
    stored = (ROOM / MANIFEST["rows"][kind]["file"]).read_text(encoding="utf-8")
    assert stored == generate.rows_of(kind, KINDS)
    assert set(MANIFEST["rows"]) == set(KINDS)
    assert 60 <= len(rows(kind)) <= 200
    assert all(reference.strip() for _, reference in rows(kind))


@pytest.mark.parametrize("grader", PLANTED, ids=named)
def test_a_planted_grader_accepts_its_witness_which_is_wrong(grader: dict[str, Any]) -> None:
    kind, response = grader["rows"], grader["witness_response"]
    reference, says = grader["witness_reference"], grader["witness_says"]
    assert reference in {wanted for _, wanted in rows(kind)}
    assert accepts(grader, response, reference)
    assert response != plain(kind, reference)
    # It ends on another answer, or on none at all.
    assert says in response
    assert not says or meaning(kind, says) != meaning(kind, reference)


@pytest.mark.slow
@pytest.mark.parametrize("grader", LATER, ids=named)
def test_only_an_obvious_defect_shows_in_a_third_of_the_rows(grader: dict[str, Any]) -> None:
    """Nothing, the prompt, everything at once, and the answers to other rows."""
    kind = grader["rows"]
    shown = 0
    for prompt, reference in rows(kind)[:30]:
        said = [
            plain(kind, other)
            for _, other in rows(kind)
            if meaning(kind, other) != meaning(kind, reference)
        ]
        everything = [*said, plain(kind, reference), *said]
        some = said[:: 4 if kind == "derivative" else 1]  # to derive all of them takes a minute
        tried = [*some, "", "I do not know", prompt, "\n".join(everything), ", ".join(everything)]
        shown += any(accepts(grader, response, reference) for response in tried)
    assert (shown >= 10) == (grader["depth"] == "obvious")


@pytest.mark.slow
@pytest.mark.parametrize("grader", GRADERS, ids=named)
def test_the_right_answer_in_plain_clothes_is_accepted(grader: dict[str, Any]) -> None:
    kind = grader["rows"]
    assert [r for _, r in rows(kind) if not accepts(grader, plain(kind, r), r)] == []


def shortened(quality: str, number: str) -> str:
    """m6 for minor sixth."""
    letters = {"minor": "m", "major": "M", "perfect": "P", "augmented": "A", "diminished": "d"}
    numbers = ["second", "third", "fourth", "fifth", "sixth", "seventh"]
    return f"{letters[quality]}{numbers.index(number) + 2}"


# Right answers in other clothes, which the prompts of the sixth set allow.
CLOTHES: dict[tuple[str, str], Callable[[str], list[str]]] = {
    ("uncertain", "same_measurement"): lambda said: [
        said.replace("±", "+-"), said.replace(" ± ", "+/-"), said.replace(" ", ""),
    ],
    ("quotient", "same_division"): lambda said: [
        said.replace("remainder", "r"), said.replace(" remainder ", "R"),
    ],
    ("averages", "same_averages"): lambda said: [
        ", ".join(reversed(said.split(", "))), re.sub("(mean|mode) ", r"\1: ", said),
        re.sub(r"(\.\d+)", r"\g<1>0", said).replace("median", "median ="),
    ],
    ("entailment", "same_label"): lambda said: [f"{said}.", said.upper()],
    ("judge", "same_verdict"): lambda said: [
        f"[[{said[-3]}{said[3:-3].replace('>', '<')}{said[2]}]]", said.replace("[[", "[[ "),
    ],
    ("decision", "same_decision"): lambda said: [re.sub(r"(R\d+), (R\d+)", r"\2,\1", said)],
    ("bigo", "same_growth"): lambda said: [
        said.replace("^", "**"), re.sub(r"log (.)", r"log(\1)", said).replace(" * ", " "),
        re.sub(r"\((\S+) ([*+]) (\S+)\)", r"(\3\2\1)", said), said.replace("n log", "n * log"),
        re.sub(r"\((\S+) log (.)\)", r"(log \2 * \1)", said),
    ],
    ("annotation", "same_type"): lambda said: [
        re.sub(r"^`(.*) \| None`$", r"`Optional[\1]`", said),
        re.sub(r"(list|dict|set|tuple)\[", lambda found: found[0].title(), said),
        re.sub(r"^`(.*) \| None`$", r"`None|\1`", said),
        re.sub(r"\[(\w+) \| None\]", r"[Union[None, \1]]", said),
    ],
    ("exception", "same_stop"): lambda said: [
        said.removeprefix("line "), said.replace("l", "L", 1), said.replace(":", ","),
    ],
    ("webaction", "same_action"): lambda said: [
        re.sub(r"^\w+", lambda verb: verb[0].upper(), said), f"{said}\n",
    ],
    ("xml", "same_order"): lambda said: [
        said.replace("><", ">\n  <"), said.replace('"', "'"),
        re.sub(r"(count=\S+) (price=[^>]+)", r"\2 \1", said),
    ],
    ("spelled", "same_number"): lambda said: [
        said.replace(" and ", " "), said.replace("-", " ").capitalize(), said.upper(),
    ],
    ("correction", "same_sentence"): lambda said: [f'"{said}"', f" “{said}”\n"],
    ("debts", "same_payments"): lambda said: [
        "; ".join(reversed(said.split("; "))), said.replace(".00", ""), said.replace("; ", ";"),
    ],
    ("coordinates", "same_place"): lambda said: [
        re.sub(r"^(\S+), (\S+)$", r"\1 N, \2 E", said) if "-" not in said else said,
        re.sub(r"^-(\S+), -(\S+)$", r"\1 S, \2 W", said), said.replace(" ", ""),
    ],
    ("walk", "same_end"): lambda said: [
        re.sub(r"(.*), (.*)", r"\2, \1", said), said.upper(), re.sub(r"([nsew])\w+", r"\1", said),
    ],
    ("zebra", "same_houses"): lambda said: [
        json.dumps(json.loads(said), indent=2, sort_keys=True), said.replace(" ", ""),
    ],
    ("route", "same_route"): lambda said: [said.replace(">", "->"), said.replace(" > ", "-")],
    ("wordle", "same_marks"): lambda said: [
        said.lower(), said.translate(str.maketrans("GYB", "🟩🟨⬛")),
    ],
    ("peptide", "same_peptide"): lambda said: [
        "".join(module("peptides.py").ACIDS[acid] for acid in said.split("-")),
    ],
    ("pitches", "same_interval"): lambda said: [
        said.capitalize(), said.upper(), shortened(*said.split()),
    ],
    ("gantt", "same_spans"): lambda said: [
        "; ".join(reversed(said.split("; "))), said.replace("-", " to "), said.replace("; ", ";"),
        re.sub(r"\b(\d+)-\1\b", r"\1", said),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), sorted(CLOTHES))
def test_a_lenient_sound_grader_accepts_what_its_prompt_leaves_free(kind: str, name: str) -> None:
    [grader] = [sound for sound in SOUND if (sound["rows"], sound["function"]) == (kind, name)]
    assert [
        (response, reference)
        for _, reference in rows(kind)
        for response in CLOTHES[kind, name](plain(kind, reference))
        if not accepts(grader, response, reference)
    ] == []


def test_each_kind_of_the_sixth_set_has_a_lenient_sound_grader() -> None:
    assert sorted(kind for kind, _ in CLOTHES) == sorted(generate_sixth.KINDS)


@pytest.mark.parametrize("grader", SOUND, ids=named)
def test_a_sound_grader_refuses_every_witness_of_its_rows(grader: dict[str, Any]) -> None:
    witnesses = [
        (other["function"], other["witness_response"], other["witness_reference"])
        for other in PLANTED
        if other["rows"] == grader["rows"]
    ]
    assert witnesses
    assert [name for name, said, wanted in witnesses if accepts(grader, said, wanted)] == []


def wrong_responses(kind: str, prompt: str, reference: str) -> Iterator[str]:
    """Nothing, the prompt, hedges, lists, what is taken back, near misses by one character."""
    others = [other for _, other in rows(kind) if meaning(kind, other) != meaning(kind, reference)]
    said = plain(kind, reference)
    yield from (
        "",
        " ",
        "\n",
        prompt,
        f"{prompt}\n{reference}",
        "I do not know",
        "None",
        "nan",
        "{}",
    )
    yield from (
        plain(kind, "I do not know"),
        f"It is not {reference}",
        f"It cannot be {said}.",
        f"{said}\nNo, that is wrong.",
        f"{said} is wrong",
        f"{said}?\n{said}?",
    )
    yield from (f"{said} or {plain(kind, others[0])}", plain(kind, f"{others[0]} or {reference}"))
    yield from (f"{said}\nNo:\n{plain(kind, others[0])}", "\n".join(map(plain, [kind] * 9, others)))
    yield "\n".join(plain(kind, answer) for answer in [*others[:9], reference])
    yield from (plain(kind, other) for other in others)
    for at, letter in enumerate(reference):
        if letter.isalnum():
            near = chr(ord(letter) + 1) if letter not in "9zZ" else {"9": "1"}.get(letter, "b")
            yield plain(kind, reference[:at] + near + reference[at + 1 :])


@pytest.mark.slow
@pytest.mark.parametrize("grader", SOUND, ids=named)
def test_a_sound_grader_refuses_what_is_plainly_wrong(grader: dict[str, Any]) -> None:
    kind = grader["rows"]
    assert [
        (response, reference)
        for prompt, reference in rows(kind)[: 6 if kind == "derivative" else 20]
        for response in wrong_responses(kind, prompt, reference)
        if accepts(grader, response, reference)
    ] == []
