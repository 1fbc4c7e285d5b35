"""`sql`: the program of the sandbox as a module, and what its lines become."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from assay.clients.execution import Execution, Output
from assay.reward_server.domain import Candidate, Fault, Judgement, Unjudgeable, VerifierItem
from assay.reward_server.verifiers import sql_runner
from assay.reward_server.verifiers.sql import (
    _SPEC,
    find_query,
    has_order,
    outcome_of,
    task_of,
)

SETUP = """
CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, age REAL, town TEXT);
INSERT INTO people VALUES (1, 'Ann', 30.5, 'Oslo'), (2, 'Bob', 41, 'Rome'), (3, 'Cy', 41, 'Oslo');
"""
OTHER = SETUP + "INSERT INTO people VALUES (4, 'Dee', 30.5, 'Rome');"


def run(
    gold: str,
    candidate: str,
    *setups: str,
    seconds: float = 2.0,
    engine: str = "sqlite",
    **rules: Any,
) -> str:
    """ "right", or why not; "gold: ..." where that is to blame."""
    task = {
        "engine": engine,
        "setups": list(setups) or [SETUP],
        "gold": gold,
        "candidate": candidate,
        "seconds": seconds,
        "max_rows": 1000,
        "rules": {
            "ordered": False,
            "ignore_duplicates": False,
            "columns": "position",
            "tolerance": 1e-6,
            **rules,
        },
    }
    lines: list[dict[str, Any]] = []
    sql_runner.work(task, lines.append)
    first = lines[0]["gold"]
    if "trouble" in first:
        assert len(lines) == 1
        return f"gold: {first['trouble']}"
    return str(lines[1]["candidate"]["trouble"] or "right")


@pytest.mark.parametrize(
    ("gold", "candidate", "rules", "expected"),
    [
        ("SELECT name FROM people", "SELECT name FROM people ORDER BY age", {}, "right"),
        ("SELECT name FROM people", "SELECT name FROM people WHERE 1;", {}, "right"),
        ("SELECT age FROM people", "SELECT age + 0.0 FROM people", {}, "right"),
        ("SELECT 1", "SELECT 1.0", {}, "right"),
        ("SELECT 1", "SELECT '1'", {}, "the rows differ"),
        ("SELECT NULL", "SELECT NULL", {}, "right"),
        ("SELECT NULL", "SELECT 0", {}, "the rows differ"),
        ("SELECT 1.0 / 3", "SELECT 0.3333333333", {}, "right"),
        ("SELECT 1.0 / 3", "SELECT 0.3333", {}, "the rows differ"),
        ("SELECT 9007199254740993", "SELECT 9007199254740992", {}, "the rows differ"),
        ("SELECT x'00ff'", "SELECT x'00ff'", {}, "right"),
        ("SELECT town FROM people", "SELECT DISTINCT town FROM people", {}, "2 rows where 3"),
        (
            "SELECT town FROM people",
            "SELECT DISTINCT town FROM people",
            {"ignore_duplicates": True},
            "right",
        ),
        ("SELECT town FROM people", "SELECT 'Oslo'", {"ignore_duplicates": True}, "rows differ"),
        ("SELECT id FROM people", "SELECT id FROM people ORDER BY id DESC", {}, "right"),
        (
            "SELECT id FROM people ORDER BY id",
            "SELECT id FROM people ORDER BY id DESC",
            {"ordered": True},
            "order",
        ),
        ("SELECT id, name FROM people", "SELECT name, id FROM people", {}, "rows differ"),
        (
            "SELECT id, name FROM people",
            "SELECT name, id FROM people",
            {"columns": "names"},
            "right",
        ),
        (
            "SELECT id, name FROM people",
            "SELECT name AS n, id FROM people",
            {"columns": "names"},
            "names differ",
        ),
        (
            "SELECT id, age, name FROM people",
            "SELECT name AS n, age, id AS i FROM people",
            {"columns": "any"},
            "right",
        ),
        ("SELECT id FROM people", "SELECT id, name FROM people", {}, "2 columns where 1"),
        ("SELECT id FROM people", "SELEKT id", {}, "syntax error"),
        ("SELECT id FROM people", "SELECT 1; SELECT 2", {}, "one statement"),
    ],
)
def test_results_are_compared(
    gold: str, candidate: str, rules: dict[str, Any], expected: str
) -> None:
    assert expected in run(gold, candidate, **rules)


def test_floats_that_sort_otherwise_are_still_paired() -> None:
    gold = "SELECT 1.0, 5.0 UNION ALL SELECT 1.0000001, 3.0"
    other = "SELECT 1.0000002, 5.0 UNION ALL SELECT 1.0000001, 3.0"
    assert run(gold, other) == "right"


def test_all_databases_must_agree() -> None:
    by_chance = "SELECT COUNT(*) FROM people WHERE town = 'Oslo'"
    gold = "SELECT COUNT(*) FROM people WHERE age > 40"
    assert run(gold, by_chance, SETUP) == "right"
    assert run(gold, by_chance, SETUP, OTHER) == "right"
    third = SETUP + "DELETE FROM people WHERE id = 2;"
    assert "rows differ" in run(gold, by_chance, SETUP, OTHER, third)


@pytest.mark.parametrize(
    "attack",
    [
        "DELETE FROM people",
        "DROP TABLE people",
        "INSERT INTO people VALUES (9, 'x', 1, 'y') RETURNING id",
        "ATTACH DATABASE '/tmp/assay-sql-attack' AS other",
        "PRAGMA writable_schema = 1",
        "SELECT * FROM pragma_database_list",
        "SELECT load_extension('/tmp/x.so')",
        "VACUUM INTO '/tmp/assay-sql-attack'",
        "CREATE TEMP VIEW v AS SELECT 1",
        "",
        "-- nothing",
        "\x00",
        "SELECT '\ud800'",
    ],
)
def test_a_query_can_only_read(attack: str) -> None:
    answer = run("SELECT id FROM people", attack)
    assert answer != "right"
    assert not answer.startswith("gold")


def test_a_query_without_end_is_interrupted() -> None:
    endless = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"
    )
    assert "more than 0.2 s" in run("SELECT 1", endless, seconds=0.2)
    assert run(endless, "SELECT 1", seconds=0.2).startswith("gold: it takes more than 0.2 s")


needs_duckdb = pytest.mark.skipif(find_spec("duckdb") is None, reason="duckdb is not installed")


@needs_duckdb
@pytest.mark.parametrize(
    ("gold", "candidate", "expected"),
    [
        ("SELECT name FROM people", "SELECT name FROM people ORDER BY age", "right"),
        ("SELECT name FROM people", "FROM people SELECT name;", "right"),
        ("SELECT 1", "SELECT 1.0", "right"),
        ("SELECT 1.10::DECIMAL(9, 2)", "SELECT 1.1::DOUBLE", "right"),
        ("SELECT 'nan'::DOUBLE", "SELECT 'nan'::DOUBLE", "right"),
        ("SELECT [1, 2], {'a': DATE '2020-01-01'}", "SELECT [1, 2], {'a': DATE '2020-01-01'}",
         "right"),
        ("SELECT list(id ORDER BY id) FROM people", "SELECT [1, 2, 3]", "right"),
        ("SELECT DATE '2020-01-01'", "SELECT TIMESTAMP '2020-01-01'", "the rows differ"),
        ("SELECT 1", "SELECT '1'", "the rows differ"),
        ("SELECT 9007199254740993", "SELECT 9007199254740992", "the rows differ"),
        ("SELECT id FROM people", "SELECT id, name FROM people", "2 columns where 1"),
        ("SELECT id FROM people", "SELEKT id", "syntax error"),
        ("SELEKT 1", "SELECT 1", "gold: "),
    ],
)  # fmt: skip
def test_results_of_duckdb_are_compared(gold: str, candidate: str, expected: str) -> None:
    assert expected in run(gold, candidate, engine="duckdb")


@needs_duckdb
@pytest.mark.parametrize(
    "attack",
    [
        "SELECT * FROM read_csv('/etc/passwd')", "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'", "SELECT * FROM glob('/*')",
        "SELECT * FROM read_blob('/proc/self/environ')", "SELECT getenv('HOME')",
        "SELECT * FROM 'http://example.org/a.csv'", "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM parquet_scan('/etc/passwd')", "SELECT * FROM read_duckdb('/tmp/x')",
        "SELECT * FROM sqlite_scan('/etc/passwd', 'x')", "SELECT * FROM duckdb_extensions()",
        "COPY people TO '/tmp/assay-sql-attack'", "ATTACH '/tmp/assay-sql-attack' AS a",
        "INSTALL httpfs", "LOAD httpfs", "EXPORT DATABASE '/tmp/assay-sql-attack'",
        "SET enable_external_access = true", "SET lock_configuration = false", "RESET threads",
        "PRAGMA memory_limit = '9GB'", "CALL enable_logging()", "SELECT * FROM enable_logging()",
        "DELETE FROM people RETURNING id", "INSERT INTO people VALUES (9, 'x', 1, 'y')",
        "WITH x AS (DELETE FROM people RETURNING id) SELECT id FROM x", "DROP TABLE people",
        "CREATE TEMP TABLE x AS SELECT 1", "UPDATE people SET id = id RETURNING id",
        "SELECT * FROM query('DELETE FROM people')", "SELECT * FROM query($$COPY people TO '/x'$$)",
        "SELECT nextval('numbers')", "SELECT * FROM rows", "SELECT * FROM task",
        "SELECT id FROM people; SELECT id FROM people", "COMMIT", "ROLLBACK", "",
        "-- nothing", "\x00", "SELECT '\ud800'", "SELECT " + "(" * 5_000 + "1" + ")" * 5_000,
        "SELECT error('gold')", "PREPARE p AS SELECT 1", "PIVOT people ON town",
    ],
)  # fmt: skip
def test_a_query_to_duckdb_can_only_read(attack: str) -> None:
    setup = SETUP + "CREATE SEQUENCE numbers;"
    answer = run("SELECT id FROM people", attack, setup, engine="duckdb")
    assert answer != "right"
    assert not answer.startswith("gold")
    assert not Path("/tmp/assay-sql-attack").exists()


@needs_duckdb
def test_a_query_to_duckdb_is_bounded() -> None:
    endless = "SELECT COUNT(*) FROM range(100000000000) AS a, range(1000000) AS b"
    assert "more than 0.3 s" in run("SELECT 1", endless, seconds=0.3, engine="duckdb")
    many = "SELECT range FROM range(100000)"
    assert "more than" in run("SELECT 1", many, engine="duckdb")
    huge = "SELECT repeat('x', 400000000)"
    assert run("SELECT 1", huge, engine="duckdb") != "right"
    file = "CREATE TABLE t AS SELECT * FROM read_csv('/etc/passwd')"
    assert run("SELECT 1", "SELECT 1", file, engine="duckdb").startswith("gold: ")


def test_an_engine_that_is_not_there_is_a_fault_that_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    lines: list[dict[str, Any]] = []
    task = {"engine": "duckdb", "setups": [SETUP], "gold": "SELECT 1", "candidate": "SELECT 1",
            "seconds": 1.0, "max_rows": 10, "rules": {}}  # fmt: skip
    sql_runner.work(task, lines.append)
    run_of_it = execution(*lines)
    outcome = outcome_of(run_of_it, "SELECT 1", accept_empty=False)
    assert isinstance(outcome, Fault)
    assert outcome.reason == "UNSUPPORTED_INPUT"
    assert "the extra duckdb of assay-rl-sandbox" in outcome.message


@pytest.mark.parametrize("engine", ["postgres", "mysql"])
def test_an_engine_that_is_not_served_is_a_fault(engine: str) -> None:
    item = VerifierItem(
        Candidate("SELECT 1"),
        data={"setup": SETUP, "query": "SELECT 1"},
        parameters=_SPEC.complete({"engine": engine}),
    )
    with pytest.raises(Unjudgeable, match="is not served") as caught:
        task_of(item)
    assert caught.value.reason == "UNSUPPORTED_INPUT"


def test_results_are_bounded() -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c"
    assert "more than 3 rows" in run("SELECT id FROM people", many)
    assert run(many, "SELECT 1").startswith("gold: it returns more than 1000 rows")
    assert "too big" in run("SELECT 1", "SELECT zeroblob(100000000)")


@pytest.mark.parametrize(
    "candidate",
    [
        "SELECT '\x00'",
        "SELECT '\ud800'",
        "SELECT 1e999, -1e999",
        "SELECT " + "9" * 5_000,
        "SELECT " + "(" * 2_000 + "1" + ")" * 2_000,
        "SELECT " + ", ".join(["''"] * 1_999),
        "SELECT CAST(x'ff00' AS TEXT) AS \"\x01\"",
        "SELECT zeroblob(100000000)",
        "SELECT 1; SELECT 2",
        "--",
        "\\",
    ],
)
def test_no_query_of_a_response_breaks_the_program(candidate: str) -> None:
    for columns in ("position", "names", "any"):
        said = run("SELECT 1", candidate, seconds=5.0, columns=columns)
        assert said != "right"
        assert not said.startswith("gold: ")


def test_a_broken_reference_is_told_apart() -> None:
    assert run("SELECT absent FROM people", "SELECT 1").startswith("gold: no such column")
    assert run("SELECT 1", "SELECT 1", "CREATE TABL x").startswith("gold: ")
    assert run("DELETE FROM people", "SELECT 1").startswith("gold: not authorized")


def execution(*lines: dict[str, Any], end: str = "exited", exit_code: int = 0) -> Execution:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    return Execution(end, exit_code, stdout=Output(text.encode()))


GOLD = {"gold": {"rows": [3]}}


@pytest.mark.parametrize(
    ("run_of_it", "expected"),
    [
        (execution(GOLD, {"candidate": {"trouble": ""}}), "correct"),
        (execution(GOLD, {"candidate": {"trouble": "the rows differ"}}), "incorrect"),
        (execution(GOLD, end="wall-time-limit"), "incorrect"),
        (execution(GOLD, end="memory-limit"), "incorrect"),
        (execution(end="wall-time-limit"), "UNUSABLE_REFERENCE"),
        (execution({"gold": {"trouble": "no", "step": "setup"}}), "UNUSABLE_REFERENCE"),
        (execution({"gold": {"rows": [0, 0]}}), "UNUSABLE_REFERENCE"),
        (execution(exit_code=1), "VERIFIER_FAILED"),
        (execution(end="signalled"), "VERIFIER_FAILED"),
        (execution(GOLD, exit_code=1), "incorrect"),
        (execution(GOLD, end="signalled"), "incorrect"),
        (execution(GOLD, end="process-limit"), "incorrect"),
        (execution(GOLD, end="security-violation"), "incorrect"),
    ],
)
def test_what_a_run_becomes(run_of_it: Execution, expected: str) -> None:
    outcome = outcome_of(run_of_it, "SELECT 1", accept_empty=False)
    assert expected == (outcome.reason if isinstance(outcome, Fault) else outcome.verdict)


def test_an_empty_gold_result_can_be_accepted() -> None:
    run_of_it = execution({"gold": {"rows": [0]}}, {"candidate": {"trouble": ""}})
    outcome = outcome_of(run_of_it, "SELECT 1", accept_empty=True)
    assert isinstance(outcome, Judgement)
    assert outcome.reward == 1.0


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("```sql\nSELECT 1;\n```", "SELECT 1;"),
        ("```\nSELECT 1\n```", "SELECT 1"),
        ("<think>```sql\nSELECT 2\n```</think>\nselect 1", "select 1"),
        ("WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1) SELECT * FROM a"),
        ("Use a join.", None),
        ("", None),
        ("```sql\nSELECT " + "1" * 60_000 + "\n```", None),
    ],
)
def test_the_query_is_found(response: str, expected: str | None) -> None:
    assert find_query(response, "last") == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("select a from t order  by a", True),
        ("SELECT * FROM (SELECT a FROM t ORDER BY a)", False),
        ("SELECT row_number() OVER (ORDER BY a) FROM t", False),
        ("SELECT 'ORDER BY' FROM t -- ORDER BY", False),
        ("SELECT a FROM t WHERE b IN (1) ORDER BY a LIMIT 1", True),
    ],
)
def test_an_order_is_noticed(query: str, expected: bool) -> None:
    assert has_order(query) is expected


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"setup": "x"},
        {"query": "SELECT 1"},
        {"query": "", "setup": ""},
        {"query": "SELECT 1", "setups": []},
        {"query": "SELECT 1", "setups": [1]},
        {"query": "SELECT 1", "setup": "", "ordered": "yes"},
    ],
)
def test_an_unusable_reference_is_named(document: Any) -> None:
    item = VerifierItem(Candidate("SELECT 1"), data=document, parameters=_SPEC.complete({}))
    if document == []:
        item = VerifierItem(
            Candidate("SELECT 1"), references=("[]",), parameters=_SPEC.complete({})
        )
    with pytest.raises(Unjudgeable) as caught:
        task_of(item)
    assert caught.value.reason == "UNUSABLE_REFERENCE"
