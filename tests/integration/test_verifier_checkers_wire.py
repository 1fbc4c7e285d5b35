"""`proof` and `verilog-equivalence` in a real sandbox, and held by the conformance kit."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator

import pytest
from bench.proofs import circuit_item, proof_item

from assay.clients import Data, EmbeddedServices, Item, RewardClient
from assay.clients.execution import AsyncExecutionClient
from assay.clients.testing import Case, check_verifier
from assay.reward_server.domain import Fault, Outcome, VerifierItem
from assay.reward_server.verifiers.proof import ProofVerifier
from assay.reward_server.verifiers.runners import RunnerVerifier
from assay.reward_server.verifiers.verilog import VerilogVerifier
from checkers_support import CIRCUITS, PROOFS, needs

SANDBOX = ["--languages", "python", "--slots", "2", "--isolation-floor", "confined"]


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    arguments = {"reward": ["--cache-entries", "0"], "sandbox": SANDBOX}
    with EmbeddedServices(["reward", "sandbox"], arguments=arguments) as running:
        yield running


def judged(
    kind: type[RunnerVerifier], services: EmbeddedServices, *items: VerifierItem
) -> list[Outcome]:
    async def judge() -> list[Outcome]:
        verifier = kind(AsyncExecutionClient(services.addresses["sandbox"]))
        outcomes = await verifier.judge_all(items, 120.0)
        await verifier.close()
        return [outcome.outcome for outcome in outcomes]

    return asyncio.run(judge())


def short(outcome: Outcome) -> str:
    return outcome.reason if isinstance(outcome, Fault) else outcome.verdict


def test_a_tool_that_the_sandbox_lacks_is_a_fault(services: EmbeddedServices) -> None:
    """Whichever is missing here; CI has none."""
    cases = [
        ("proof", {"system": "coq", "statement": "True"}, "```coq\nexact I.\n```", "coqc"),
        ("proof", {"system": "lean", "statement": "True"}, "```lean\ntrivial\n```", "lean"),
        ("proof", {"system": "smt", "statement": "(= 1 1)"}, "```smt\n(assert true)\n```", "z3"),
    ]
    module = "module m(input a, output y); assign y = a; endmodule"
    tools = "yosys" if shutil.which("yosys") else "iverilog"
    cases.append(("verilog-equivalence", {"module": module}, module, tools))
    absent = [case for case in cases if shutil.which(case[3]) is None]
    items = [Item(text, Data(data), verifier=name) for name, data, text, _ in absent]
    if not items:
        pytest.skip("every tool is installed")
    with RewardClient(services.address) as client:
        results = client.score(items)
    for result, (_, _, _, tool) in zip(results, absent, strict=True):
        assert result.fault is not None
        assert result.fault.reason == "UNSUPPORTED_INPUT"
        assert "install" in result.fault.message
        assert tool.removesuffix("c") in result.fault.message


@needs("coqc", "z3")
def test_proofs_in_the_sandbox(services: EmbeddedServices) -> None:
    names = {
        "coq: lia", "coq: a hypothesis of the reference's", "coq: Admitted", "coq: a plug-in",
        "coq: another statement", "smt: one lemma", "smt: echo", "smt: assumes false",
    }  # fmt: skip
    rows = [row for row in PROOFS if row["case"] in names]
    assert len(rows) == len(names)
    verifier = ProofVerifier(None)  # type: ignore[arg-type]
    outcomes = judged(ProofVerifier, services, *(proof_item(row, verifier) for row in rows))
    assert [short(outcome) for outcome in outcomes] == [
        "correct" if row["kind"] == "right" else "incorrect" for row in rows
    ]


@pytest.mark.slow
@needs("yosys", "iverilog")
def test_circuits_in_the_sandbox(services: EmbeddedServices) -> None:
    names = {
        "nor of nots", "a counter of another style", "the other edge", "a port named trigger",
        "assumes false", "a loop through a module",
    }  # fmt: skip
    rows = [row for row in CIRCUITS if row["case"] in names]
    verifier = VerilogVerifier(None)  # type: ignore[arg-type]
    outcomes = judged(VerilogVerifier, services, *(circuit_item(row, verifier) for row in rows))
    right = [short(outcome) == "correct" for outcome in outcomes]
    assert right == [row["kind"] == "right" for row in rows]
    assert not any(isinstance(outcome, Fault) for outcome in outcomes)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(ProofVerifier, marks=needs("z3")),
        pytest.param(VerilogVerifier, marks=needs("yosys")),
    ],
)
def test_both_pass_the_conformance_kit(
    kind: type[RunnerVerifier], services: EmbeddedServices
) -> None:
    verifier = kind(None)  # type: ignore[arg-type]
    cases = []
    for example in verifier.examples:
        item = example.item
        reference = Data(item.data) if item.data is not None else item.references[0]
        text = item.candidate.text or ""
        cases.append(Case(text, reference, example.verdict, parameters=item.parameters))
    check_verifier(
        verifier.spec.name, cases, target=services.address, item_timeout_s=60.0, hostile_chars=2**14
    ).raise_for_failures()
