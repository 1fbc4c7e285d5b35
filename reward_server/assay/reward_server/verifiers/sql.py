"""`sql`: the query in the response returns what the gold query returns, on each database.

The reference is `{"setup": "CREATE TABLE ...; INSERT ...", "query": "SELECT ..."}`, or with
`"setups"`, a list, for several databases: all must agree, as in test-suite accuracy (R. Zhong and
others, arXiv 2010.02840), which keeps a query that is right by chance from passing. A program of
ours (`sql_runner`) runs both queries in the sandbox, on the engine that is named (SQLite, DuckDB),
and gets them as data; they can only read, and each has timeout_s for all databases together. That
program compares the rows, where no query reaches.

DuckDB runs where the sandbox has its package: install the extra duckdb of assay-rl-sandbox and
start it with --python-packages numpy,pytest,duckdb; else an item is the fault UNSUPPORTED_INPUT.
postgres and mysql are that fault too: no server of theirs runs in the sandbox.

Rows are a multiset, or a sequence where order matters: order=auto asks for it when the reference
says `"ordered": true`, or says nothing and the gold query has an ORDER BY outside of parentheses.
Columns are compared by position, by names in any order, or in any order that fits. Numbers are
equal within the relative float_tolerance (1 and 1.0 are equal; whole numbers exactly); texts and
blobs are equal exactly, and '1' is not 1. duplicates=ignore compares sets, as BIRD (arXiv
2305.03111) does.

The query is the last `sql` block of the response, or the response after its thought when it begins
with SELECT, WITH or VALUES. A query that fails, changes data, takes too long, or returns too much
is incorrect. A setup or gold query that does any of these is the fault UNUSABLE_REFERENCE; so is a
gold query that returns no row on every database, since any contradiction would equal it (empty_gold
accepts it). What the sandbox could not run is a fault with the sandbox's own reason. Whatever
happens once the gold query has run is the response's doing, so that no query can choose a fault.

What a policy could game: a single small database lets wrong queries pass by chance: give several,
with rows that tell near misses apart. Known limits: SQLite's and DuckDB's dialects; in DuckDB a
Boolean equals 0 or 1, and values inside lists and structs are compared without tolerance; rows that
tie under ORDER BY must come in the gold query's order, so make the order of the reference total;
queries that write are not judged.

Measured: 23 pairs of queries with the verdict that execution of both gives, and 58 attacks on the
two engines, of which none reads beyond the database, writes or is right
(`tests/unit/test_verifier_sql.py`). On Spider or BIRD: not yet, because their databases are not at
hand.
"""

from __future__ import annotations

import re

from assay.clients.execution import Execution
from assay.reward_server.domain import (
    UNSUPPORTED_INPUT,
    UNUSABLE_REFERENCE,
    Candidate,
    Component,
    Fault,
    JsonValue,
    Judgement,
    Outcome,
    ParameterSpec,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.verifiers import code_text
from assay.reward_server.verifiers.runners import (
    SHOWN_CHARS,
    RunnerVerifier,
    Task,
    lines_of,
    one_line,
    unusable,
    without_gold,
)

MAX_SETUPS = 64
MAX_SETUP_CHARS = 4_000_000
MAX_QUERY_CHARS = 50_000
_BARE = re.compile(r"\s*(?:SELECT|WITH|VALUES)\b", re.IGNORECASE)
_SKIPPED = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*.*?\*/|([()])|\b(order)\s+by\b",
    re.IGNORECASE | re.DOTALL,
)

ENGINES = ("sqlite", "duckdb")
_NOT_SERVED = ("postgres", "mysql")
_NO_DUCKDB = (
    "engine=duckdb needs duckdb in the sandbox: install the extra duckdb of assay-rl-sandbox there "
    "and start it with --python-packages numpy,pytest,duckdb"
)

_SPEC = VerifierSpec(
    name="sql",
    version="2",
    description="The query returns what the gold query returns on each database, in the sandbox.",
    tasks=("sql", "text-to-sql"),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("correct", "incorrect", "unparsed"),
    parameters=(
        ParameterSpec(
            "engine",
            "string",
            "sqlite",
            "Whose dialect the queries are in; postgres and mysql are a fault, with its reason.",
            allowed_values=(*ENGINES, *_NOT_SERVED),
        ),
        ParameterSpec(
            "order",
            "string",
            "auto",
            "Whether rows are in order: as the reference or its ORDER BY says; never; always.",
            allowed_values=("auto", "ignore", "require"),
        ),
        ParameterSpec(
            "columns",
            "string",
            "position",
            "How columns are matched: by position, by name, or in any order that fits.",
            allowed_values=("position", "names", "any"),
        ),
        ParameterSpec(
            "duplicates",
            "string",
            "count",
            "Whether equal rows count as often as they come, or once.",
            allowed_values=("count", "ignore"),
        ),
        ParameterSpec(
            "float_tolerance",
            "float",
            1e-6,
            "The greatest relative difference of numbers that are not both whole.",
            minimum=0.0,
            maximum=0.1,
        ),
        ParameterSpec(
            "timeout_s",
            "float",
            5.0,
            "Seconds that a query may take on all databases together.",
            minimum=0.1,
            maximum=50.0,
        ),
        ParameterSpec(
            "max_rows",
            "int",
            10_000,
            "Rows that the gold query may return.",
            minimum=1,
            maximum=200_000,
        ),
        ParameterSpec(
            "empty_gold",
            "string",
            "refuse",
            "A gold query without rows on every database: a fault, or judged.",
            allowed_values=("refuse", "accept"),
        ),
        ParameterSpec(
            "extraction",
            "string",
            "last",
            "Which fenced block is the query; whole takes the response itself.",
            allowed_values=("last", "first", "longest", "whole"),
        ),
    ),
    # A busy machine may take a query past its time.
    deterministic=False,
    cacheable=False,
    isolation="remote",
)


class SqlVerifier(RunnerVerifier):
    """Compares the results of queries; see `RunnerVerifier`."""

    runner = "sql_runner.py"
    memory_bytes = 512 << 20

    @property
    def spec(self) -> VerifierSpec:
        """The verifier's description."""
        return _SPEC

    @property
    def examples(self) -> tuple[VerifierExample, ...]:
        """One item for each verdict."""
        return (
            VerifierExample(_example("```sql\nSELECT name FROM t WHERE n >= 2\n```"), "correct"),
            VerifierExample(_example("```sql\nSELECT name FROM t\n```"), "incorrect"),
            VerifierExample(_example("There is no such name."), "unparsed"),
        )

    def task_of(self, item: VerifierItem) -> Task | Judgement:
        """See `RunnerVerifier`."""
        return task_of(item) or _judgement("unparsed", "there is no query", None)

    def outcome_of(self, execution: Execution, task: Task, item: VerifierItem) -> Outcome:
        """See `RunnerVerifier`."""
        empty = item.parameters["empty_gold"] == "accept"
        return outcome_of(execution, str(task["candidate"]), accept_empty=empty)


def task_of(item: VerifierItem) -> Task | None:
    """The task of `sql_runner`; None where the response holds no query. Pure.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE, saying what is wrong; UNSUPPORTED_INPUT for an engine that
            is not served.
    """
    engine = str(item.parameters["engine"])
    if engine in _NOT_SERVED:
        raise Unjudgeable(
            UNSUPPORTED_INPUT,
            f"engine={engine} is not served: no server of it runs in the sandbox; "
            f"take one of {', '.join(ENGINES)}",
        )
    fields = item.document()
    if not isinstance(fields, dict):
        raise unusable("sql", 'must be an object {"setup": "...", "query": "..."}')
    gold, setups = fields.get("query"), fields.get("setups", [fields.get("setup")])
    if not isinstance(gold, str) or not gold.strip():
        raise unusable("sql", '"query" must be the text of a query')
    if not isinstance(setups, list) or not 0 < len(setups) <= MAX_SETUPS:
        raise unusable("sql", f'"setups" must be a list of 1 to {MAX_SETUPS} texts')
    texts = [setup for setup in setups if isinstance(setup, str)]
    if len(texts) != len(setups) or sum(map(len, texts)) > MAX_SETUP_CHARS:
        raise unusable(
            "sql", f"a setup must be a text; all have at most {MAX_SETUP_CHARS} characters"
        )
    ordered = fields.get("ordered")
    if ordered is not None and not isinstance(ordered, bool):
        raise unusable("sql", '"ordered" must be true or false')
    query = find_query(item.response(), str(item.parameters["extraction"]))
    if query is None:
        return None
    order = item.parameters["order"]
    rules: dict[str, JsonValue] = {
        "ordered": order == "require"
        or (order == "auto" and (has_order(gold) if ordered is None else ordered)),
        "ignore_duplicates": item.parameters["duplicates"] == "ignore",
        "columns": str(item.parameters["columns"]),
        "tolerance": float(item.parameters["float_tolerance"]),  # type: ignore[arg-type]
    }
    return {
        "engine": engine,
        "setups": list(texts),
        "gold": gold,
        "candidate": query,
        "seconds": float(item.parameters["timeout_s"]),  # type: ignore[arg-type]
        "max_rows": int(item.parameters["max_rows"]),  # type: ignore[arg-type]
        "rules": rules,
    }


def find_query(response: str, extraction: str) -> str | None:
    """The query of a response; None where there is none."""
    query = code_text.extract_code(response, "sql", extraction)
    if query is None:
        text = response.rpartition("</think>")[2]
        query = text if _BARE.match(text) else None
    if query is None or not query.strip() or len(query) > MAX_QUERY_CHARS:
        return None
    return query.strip()


def has_order(query: str) -> bool:
    """Whether a query has an ORDER BY outside of parentheses, texts and comments."""
    depth = 0
    for found in _SKIPPED.finditer(query):
        if found[1]:
            depth += 1 if found[1] == "(" else -1
        elif found[2] and depth <= 0:
            return True
    return False


def outcome_of(execution: Execution, query: str, *, accept_empty: bool) -> Outcome:
    """The outcome of a run of `sql_runner`. Pure.

    Args:
        execution: of the run.
        query: the candidate's.
        accept_empty: a gold query may return no row on every database.
    """
    gold, candidate = lines_of(execution)
    trouble = _gold_trouble(execution, gold, accept_empty=accept_empty)
    if trouble is not None:
        return trouble
    if candidate is None:
        # The gold query has just gone through the same program: what ends it now is the query.
        return _judgement("incorrect", _ending(execution), query)
    if candidate.get("trouble"):
        word = "the query fails" if candidate.get("failed") else "another result"
        where = f" on database {candidate.get('database')}"
        return _judgement("incorrect", f"{word}{where}: {candidate['trouble']}", query)
    return _judgement("correct", "the same result on each database", query)


def _gold_trouble(execution: Execution, gold: Task | None, *, accept_empty: bool) -> Fault | None:
    """A defect of the reference or of our program; None for none."""
    if gold is None:
        return without_gold(execution, "sql", "the reference's setup or query")
    if gold.get("step") == "engine":
        return Fault(UNSUPPORTED_INPUT, f"{_NO_DUCKDB}: {gold.get('trouble')}")
    if "trouble" in gold:
        text = f"{gold.get('step')} of the reference fails on database {gold.get('database')}"
        return Fault(UNUSABLE_REFERENCE, f"{text}: {gold['trouble']}")
    rows = gold.get("rows")
    if accept_empty or not isinstance(rows, list) or any(rows):
        return None
    return Fault(
        UNUSABLE_REFERENCE,
        "the gold query returns no row on any database, so any contradiction would equal it: "
        "add rows, or set empty_gold=accept",
    )


def _ending(execution: Execution) -> str:
    if execution.end == "exited":
        words = execution.stderr.text.strip()[-300:]
        return f"the query breaks the program that compares the results: {words}".rstrip(": ")
    return f"the query ran into the {execution.end}"


def _judgement(verdict: str, why: str, query: str | None) -> Judgement:
    return Judgement.composed(
        verdict,
        (Component("same-result", float(verdict == "correct")),),
        extracted_answer=query[:SHOWN_CHARS] if query else None,
        explanation=one_line(why),
    )


def _example(response: str) -> VerifierItem:
    setup = "CREATE TABLE t(name TEXT, n INT); INSERT INTO t VALUES ('a', 1), ('b', 2), ('c', 3);"
    data: JsonValue = {"setup": setup, "query": "SELECT name FROM t WHERE n > 1"}
    return VerifierItem(Candidate(response), data=data, parameters=_SPEC.complete({}))
