"""`sql` on a real sandbox: the verifier's own program, with a client and over the whole wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib.util import find_spec

import pytest

from assay.clients.execution import AsyncExecutionClient
from assay.reward_server.domain import Candidate, Fault, JsonValue, Judgement, VerifierItem
from assay.reward_server.verifiers.sql import SqlVerifier
from sandbox_service import running

SETUP = "CREATE TABLE t(name TEXT, n INT); INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3);"
GOLD = "SELECT name FROM t WHERE n > 1"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT COUNT(*) FROM c"


@pytest.fixture(scope="module")
def address() -> object:
    with running("--languages", "python", "--slots", "2") as (address, _process):
        yield address


@pytest.fixture
async def verifier(address: str) -> AsyncIterator[SqlVerifier]:
    verifier = SqlVerifier(AsyncExecutionClient(address))
    yield verifier
    await verifier.close()


def item(response: str, reference: JsonValue = None, **parameters: float | str) -> VerifierItem:
    reference = reference or {"setup": SETUP, "query": GOLD}
    complete = SqlVerifier(None).spec.complete(parameters)  # type: ignore[arg-type]
    return VerifierItem(Candidate(response), data=reference, parameters=complete)


def short(outcome: object) -> str:
    if isinstance(outcome, Fault):
        return outcome.reason
    assert isinstance(outcome, Judgement)
    return outcome.verdict


async def test_examples(verifier: SqlVerifier) -> None:
    examples = verifier.examples
    outcomes = await verifier.judge_all([example.item for example in examples], 30.0)
    assert [short(outcome.outcome) for outcome in outcomes] == [
        example.verdict for example in examples
    ]


async def test_queries_are_judged_by_their_results(verifier: SqlVerifier) -> None:
    two: JsonValue = {"setups": [SETUP, SETUP + "DELETE FROM t WHERE n = 2;"], "query": GOLD}
    ordered: JsonValue = {"setup": SETUP, "query": GOLD + " ORDER BY n DESC"}
    cases = [
        (item("SELECT name FROM t WHERE n >= 2"), "correct"),
        (item("```sql\nSELECT name FROM t WHERE name IN ('b', 'c')\n```", two), "correct"),
        (item("SELECT 'b' UNION ALL SELECT 'c'", two), "incorrect"),
        (item("SELECT name FROM t WHERE n > 1 ORDER BY n", ordered), "incorrect"),
        (item("SELECT name FROM t WHERE n > 1 ORDER BY n", ordered, order="ignore"), "correct"),
        (item("```sql\nDROP TABLE t\n```"), "incorrect"),
        (item("I do not know."), "unparsed"),
        (item("SELECT name FROM t", {"setup": "CREATE", "query": GOLD}), "UNUSABLE_REFERENCE"),
        (item("SELECT 1", {"setup": SETUP, "query": "SELECT 1 WHERE 0"}), "UNUSABLE_REFERENCE"),
        (item("SELECT 1", {"setup": SETUP}), "UNUSABLE_REFERENCE"),
        (item(ENDLESS, timeout_s=0.3), "incorrect"),
    ]
    outcomes = await verifier.judge_all([case for case, _ in cases], 60.0)
    assert [short(outcome.outcome) for outcome in outcomes] == [verdict for _, verdict in cases]


async def test_memory_of_the_gold_query_and_of_the_candidate(verifier: SqlVerifier) -> None:
    blobs = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 50) "
    blobs += "SELECT hex(randomblob(9000000)) FROM c"
    [outcome] = await verifier.judge_all([item(blobs)], 60.0)
    assert short(outcome.outcome) == "incorrect"
    reference: JsonValue = {"setup": SETUP, "query": blobs}
    [outcome] = await verifier.judge_all([item("SELECT 1", reference)], 60.0)
    assert short(outcome.outcome) == "UNUSABLE_REFERENCE"


async def test_a_sandbox_that_is_not_there_makes_faults() -> None:
    verifier = SqlVerifier(AsyncExecutionClient("127.0.0.1:1"))
    [outcome] = await verifier.judge_all([item("SELECT 1")], 1.0)
    assert isinstance(outcome.outcome, Fault)
    assert outcome.outcome.reason in ("UNREACHABLE", "DEADLINE_EXCEEDED")
    await verifier.close()


DUCK = {"setup": SETUP, "query": "SELECT name FROM t WHERE n > 1"}


async def test_duckdb_that_is_not_granted_is_a_fault(verifier: SqlVerifier) -> None:
    [outcome] = await verifier.judge_all([item("SELECT 1", DUCK, engine="duckdb")], 60.0)
    assert short(outcome.outcome) == "UNSUPPORTED_INPUT"


@pytest.mark.skipif(find_spec("duckdb") is None, reason="duckdb is not installed")
async def test_duckdb_in_the_jail() -> None:
    granted = ("--python-packages", "numpy,duckdb")
    with running("--languages", "python", "--slots", "2", *granted) as (address, _process):
        verifier = SqlVerifier(AsyncExecutionClient(address))
        cases = [
            ("FROM t SELECT name WHERE n >= 2", "unparsed"),
            ("```duckdb\nFROM t SELECT name WHERE n >= 2\n```", "correct"),
            ("SELECT name FROM t", "incorrect"),
            ("SELECT * FROM read_text('/etc/passwd')", "incorrect"),
            ("SELECT COUNT(*) FROM range(100000000000) AS a, range(1000000) AS b", "incorrect"),
            ("SELECT list(a.range || b.range) FROM range(1000000) a, range(1000) b", "incorrect"),
        ]
        items = [item(text, DUCK, engine="duckdb", timeout_s=1.0) for text, _ in cases]
        outcomes = await verifier.judge_all(items, 120.0)
        await verifier.close()
    found = [short(outcome.outcome) for outcome in outcomes]
    assert found == [verdict for _, verdict in cases]
