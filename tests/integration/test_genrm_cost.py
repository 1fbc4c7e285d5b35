"""What judges cost, over the wire: prices, accounts of tenants and runs, budgets, and the cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.clients.judging import GroupItem, JudgeClient, JudgeItem, JudgeSettings, ModelJudgement
from assay.clients.types import Fault
from assay.kit.tokens import hash_token
from genrm_service import running
from genrm_support import make_model
from metrics_support import scrape, total

TOKENS = {"team-a": "assay_token-of-team-a", "team-b": "assay_token-of-team-b"}
MODELS = """
[model.priced]
path = "./model"
price_prompt = 2.0
price_completion = 10.0
price_second = 0.001

[budget]
run = 0.01
tenants = {{ team-b = {b} }}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cost")
    make_model(folder / "model", seed=5)
    lines = [hash_token(tenant, token).line for tenant, token in TOKENS.items()]
    (folder / "tokens").write_text("\n".join(lines) + "\n")
    (folder / "models.toml").write_text(MODELS.format(b=0.0005))
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[tuple[str, str]]:
    """Its address, and that of its metrics."""
    flags = ("--models", folder / "models.toml", "--tokens-file", folder / "tokens")
    with running(*flags, "--metrics-port", "0", "--metric-labels", "run") as (address, process):
        assert process.stdout is not None
        yield address, process.stdout.readline().split()[-1]


def client(service: tuple[str, str], tenant: str) -> JudgeClient:
    return JudgeClient(service[0], token=TOKENS[tenant])


def items(*texts: str) -> list[JudgeItem]:
    return [JudgeItem("What colour is the sky?", text, ground_truth="blue") for text in texts]


def test_an_answer_costs_its_tokens_and_seconds_and_the_second_time_nothing(
    service: tuple[str, str],
) -> None:
    asked = JudgeSettings(run="first", seed=1)
    with client(service, "team-a") as judge:
        [one] = judge.judge_responses(items("Blue."), asked)
        [again] = judge.judge_responses(items("Blue."), JudgeSettings(run="second", seed=1))
        assert isinstance(one, ModelJudgement)
        assert isinstance(again, ModelJudgement)
    usage = one.usage
    assert usage.engine_s > 0
    expected = (usage.prompt * 2.0 + usage.completion * 10.0) / 1e6 + usage.engine_s * 0.001
    assert usage.cost == pytest.approx(expected, rel=1e-6)
    assert again.score == one.score
    assert (again.usage.cost, again.usage.engine_s) == (0.0, 0.0)
    assert again.usage.cached == again.usage.prompt == usage.prompt
    seen = scrape(service[1])
    assert total(seen, "assay_genrm_shared_answers_total", model="priced", result="hit") >= 1
    paid = total(seen, "assay_genrm_tenant_cost_total", tenant="team-a", model="priced")
    assert paid >= usage.cost * (1 - 1e-6)
    assert total(seen, "assay_genrm_run_cost_total", run="first") == pytest.approx(usage.cost)
    assert total(seen, "assay_genrm_run_cost_total", run="second") == 0
    assert total(seen, "assay_genrm_tenant_engine_seconds_total", tenant="team-a") > 0


@pytest.mark.slow
def test_a_run_that_has_spent_its_budget_gets_faults_and_others_go_on(
    service: tuple[str, str],
) -> None:
    with client(service, "team-a") as judge:
        found: list[object] = []
        for number in range(2000):
            asked = JudgeSettings(run="long", scoring="votes", votes=1, max_tokens=64)
            found += judge.judge_responses(items(f"It is colour {number}. " * 20), asked)
            if isinstance(found[-1], Fault) and found[-1].reason == "BUDGET_SPENT":
                break
        assert isinstance(found[-1], Fault)
        assert found[-1].reason == "BUDGET_SPENT"
        assert (found[-1].metadata["of"], found[-1].metadata["budget"]) == ("run", "0.01")
        assert 0.01 <= float(found[-1].metadata["spent"]) < 0.02
        assert "ask the operator" in found[-1].message
        [other] = judge.judge_responses(items("Grey."), JudgeSettings(run="other", seed=1))
        assert isinstance(other, ModelJudgement)
        # What is known already costs nothing, so that it is given.
        [known] = judge.judge_responses(items("Grey."), JudgeSettings(run="long", seed=1))
        assert isinstance(known, ModelJudgement)


def test_a_tenant_that_has_spent_its_budget_is_refused_whatever_the_run(
    service: tuple[str, str],
) -> None:
    group = GroupItem("What colour is the sky?", [f"Colour {n}." * 30 for n in range(6)])
    with client(service, "team-b") as judge:
        for run in ("x", "y", "z"):
            [found] = judge.judge_groups([group], JudgeSettings(run=run, template="preference"))
            if isinstance(found, Fault):
                break
            group = GroupItem(group.prompt, [text + run for text in group.responses])
        assert isinstance(found, Fault)
        assert (found.reason, found.metadata["of"]) == ("BUDGET_SPENT", "tenant")
        [dead] = judge.judge_responses(items("Anything new."), JudgeSettings(run="w"))
        assert isinstance(dead, Fault)
    with client(service, "team-a") as judge:
        [alive] = judge.judge_responses(items("Anything new."), JudgeSettings(run="w"))
        assert isinstance(alive, ModelJudgement)
    seen = scrape(service[1])
    assert total(seen, "assay_genrm_faults_total", reason="BUDGET_SPENT") >= 2


def test_a_run_with_too_long_a_name_is_a_fault(service: tuple[str, str]) -> None:
    with client(service, "team-a") as judge:
        [found] = judge.judge_responses(items("Blue."), JudgeSettings(run="r" * 257))
    assert isinstance(found, Fault)
    assert found.reason == "INVALID_LABEL"
