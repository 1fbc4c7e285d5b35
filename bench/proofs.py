"""`proof` and `verilog-equivalence` on tables of right, wrong and forged responses, in a sandbox.

The tables are tests/proofs.jsonl and tests/circuits.jsonl; a response is the block that a policy
would write. It starts a sandbox with one slot, so that the seconds of a check are its own. Needs
coqc, z3, yosys and iverilog; rows of a system that is not there are faults, and counted. Intervals
are Clopper and Pearson's, 95 %, as if the rows were drawn from something.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from assay.clients import EmbeddedServices
from assay.clients.execution import AsyncExecutionClient
from assay.kit.runs.stats import clopper_pearson
from assay.reward_server.domain import Candidate, Fault, VerifierItem
from assay.reward_server.verifiers.proof import ProofVerifier
from assay.reward_server.verifiers.runners import RunnerVerifier
from assay.reward_server.verifiers.verilog import VerilogVerifier

TESTS = Path(__file__).resolve().parents[1] / "tests"
_TIMEOUT_S = 600.0


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a table."""
    text = (TESTS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def proof_item(row: dict[str, Any], verifier: RunnerVerifier) -> VerifierItem:
    """A row of proofs.jsonl as an item."""
    keys = ("system", "statement", "header", "definitions", "axioms")
    data = {key: row[key] for key in keys if key in row}
    parameters = verifier.spec.complete({"trivial": "accept", "effort": 200_000})
    return VerifierItem(_block(row["system"], row["proof"]), data=data, parameters=parameters)


def circuit_item(row: dict[str, Any], verifier: RunnerVerifier) -> VerifierItem:
    """A row of circuits.jsonl as an item."""
    given: dict[str, str] = {key: row[key] for key in ("initial", "evidence") if key in row}
    return VerifierItem(
        _block("verilog", row["gate"]),
        data={"module": row["gold"], "top": "top"},
        parameters=verifier.spec.complete(given),
    )


def _block(tag: str, text: str) -> Candidate:
    return Candidate(f"```{tag}\n{text}\n```")


async def _measure(address: str) -> None:
    for verifier, table, item in (
        (ProofVerifier(AsyncExecutionClient(address)), rows("proofs"), proof_item),
        (VerilogVerifier(AsyncExecutionClient(address)), rows("circuits"), circuit_item),
    ):
        print(f"\n`{verifier.spec.name}`\n")
        print(
            "| system, kind | | correct | incorrect or undecided | faults | s, median | s, most |"
        )
        print("|---|---|---|---|---|---|---|")
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        times_s: dict[str, list[float]] = defaultdict(list)
        words: Counter[str] = Counter()
        for row in table:
            began = time.perf_counter()
            [found] = await verifier.judge_all([item(row, verifier)], _TIMEOUT_S)
            key = f"{row.get('system', 'verilog')}, {row['kind']}"
            times_s[key].append(time.perf_counter() - began)
            if isinstance(found.outcome, Fault):
                counts[key]["fault"] += 1
                continue
            verdict = found.outcome.verdict
            counts[key]["correct" if verdict == "correct" else "not"] += 1
            if verdict == "correct":
                words[found.outcome.explanation.split(":")[0].split(",")[0]] += 1
            if (verdict == "correct") != (row["kind"] == "right"):
                print(f"<!-- {row['case']}: {verdict}: {found.outcome.explanation[:120]} -->")
        for key, count in counts.items():
            print(_line(key, count, times_s[key]))
        print("evidence:", dict(words))
        await verifier.close()


def _line(key: str, count: Counter[str], times_s: list[float]) -> str:
    judged = count["correct"] + count["not"]
    cells = [str(len(times_s))]
    for name in ("correct", "not"):
        low, high = clopper_pearson(count[name], judged) if judged else (0.0, 1.0)
        cells.append(f"{count[name]} [{100 * low:.0f}, {100 * high:.0f}] %" if judged else "-")
    cells += [str(count["fault"]), f"{statistics.median(times_s):.2f}", f"{max(times_s):.1f}"]
    return f"| {key} | {' | '.join(cells)} |"


def run() -> None:
    """Prints a table for each verifier."""
    arguments = {"sandbox": ["--slots", "1", "--languages", "python"]}
    with EmbeddedServices(["sandbox"], arguments=arguments) as services:
        asyncio.run(_measure(services.addresses["sandbox"]))
