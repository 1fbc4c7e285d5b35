"""Rows written by a model: only what the environment itself can be solved by is taken."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.search_support import play

from assay.environments.environment import Environment
from assay.environments.generating import (
    GeneratedRows,
    generate_rows,
    skill_deficits,
    solvable,
)
from assay.environments.shipped.user import UserEnvironment, UserSettings

EXAMPLE: dict[str, Any] = {
    "skill": "cancel",
    "prompt": "Cancel o1.",
    "user": {"script": [{"say": "Bye.", "done": True}]},
    "state": {"orders": {"o1": {"status": "open"}, "o2": {"status": "open"}}},
    "expected": {"orders": {"o1": {"status": "cancelled"}, "o2": {"status": "open"}}},
}
CANCEL = {
    "name": "change_record",
    "arguments": {"table": "orders", "id": "o2", "field": "status", "value": "cancelled"},
}
NEW = {
    **EXAMPLE,
    "prompt": "Cancel o2.",
    "expected": {"orders": {"o1": {"status": "open"}, "o2": {"status": "cancelled"}}},
    "solution": [CANCEL, "Done."],
}


def generated(*rows: Any, text: str = "") -> tuple[GeneratedRows, list[str]]:
    asked: list[str] = []

    async def write(messages: Sequence[Mapping[str, str]]) -> str:
        asked.append(messages[0]["content"])
        return text or f"Here: {json.dumps(rows)}"

    accept = solvable(UserEnvironment, UserSettings())
    deficits = {"cancel": 0.25, "refund": 1.0}
    return asyncio.run(generate_rows(write, [EXAMPLE], deficits, accept, count=3)), asked


def test_a_row_that_its_solution_solves_is_taken_without_it() -> None:
    found, asked = generated(NEW)
    assert found.refused == ()
    [row] = found.rows
    assert "solution" not in row
    assert asked[0].index("- refund: 1.00") < asked[0].index("- cancel: 0.25")
    assert play(UserEnvironment(), row, ["Done."]).reward == 0.0


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({**NEW, "solution": ["Done."]}, "does not solve"),
        ({**NEW, "solution": "Done."}, "does not solve"),
        ({**NEW, "solution": [3]}, "no solution"),
        ({**NEW, "solution": [{"name": 3}]}, "no solution"),
        ({key: value for key, value in NEW.items() if key != "solution"}, "no solution"),
        ({**NEW, "expected": NEW["state"], "solution": ["Done."]}, "saying nothing"),
        ({**NEW, "state": "x"}, "no row"),
        ({**NEW, "skill": "fly"}, "skill"),
        ({**EXAMPLE, "solution": [CANCEL]}, "already"),
        ("x", "no object"),
    ],
)
def test_rows_that_are_refused(row: Any, why: str) -> None:
    found, _ = generated(row, NEW, NEW)
    assert len(found.rows) == 1
    assert why in found.refused[0]
    assert "already" in found.refused[1]


@pytest.mark.parametrize("text", ["I would rather not", "[", '{"a": 1}', "[" * 9_000 + "]" * 9_000])
def test_what_is_no_list_gives_no_rows(text: str) -> None:
    found, _ = generated(text=text)
    assert found.rows == ()
    assert found.refused


def test_no_more_rows_than_were_asked_for() -> None:
    rows = [{**NEW, "prompt": f"Cancel o2, {n}."} for n in range(9)]
    assert len(generated(*rows)[0].rows) == 3


def test_deficits_count_judgements_only() -> None:
    results: list[Any] = [({"skill": "a"}, 1.0), ({"skill": "a"}, 0.5), ({"skill": "a"}, None),
                          ({"skill": "b"}, -1.0), ({}, 3.0)]  # fmt: skip
    assert skill_deficits(results) == {"": 0.0, "a": 0.25, "b": 1.0}


def test_an_environment_that_breaks_accepts_nothing() -> None:
    class Broken(Environment):
        name = "broken"

        def reward(self) -> float:
            raise ZeroDivisionError

    async def refusal() -> str:
        return await solvable(Broken, None)({"prompt": "x", "solution": ["y"]})

    assert "ZeroDivisionError" in asyncio.run(refusal())
