"""Pairwise training with a real judge: genrm with small random models behind a reward server.

Their opinions mean nothing; what is tested is that each reaches the loss as what it is. What must
be the same bit for bit is tested in test_pairwise_anchors.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.clients import EmbeddedServices
from assay.kit.runs.records import read_rows
from assay.trainer.data.problems import load_problems
from assay.trainer.methods.pairwise.anchors import key_of
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import Config
from genrm_service import UNTESTED
from genrm_support import make_model

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
Make = Callable[..., Config]


@pytest.fixture(scope="module")
def judges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a reward server answers that knows a judge of pairs and a reward model."""
    folder = tmp_path_factory.mktemp("judges")
    models = {kind: make_model(folder / kind, kind) for kind in ("causal", "scalar")}  # type: ignore[arg-type]
    flags = [flag for name, path in models.items() for flag in ("--model", f"{name}={path}")]
    flags += UNTESTED
    arguments = {"genrm": flags, "reward": ["--cache-entries", "0"]}
    with EmbeddedServices(
        ("reward", "genrm"), arguments=arguments, start_timeout_s=280.0
    ) as services:
        yield services.address


@pytest.fixture
def miniature(repository: Path, judges: str, tiny_model: Path, sums_file: Path) -> Make:
    """A pairwise preset with the tiny model and the real judge."""

    def make(name: str, *overrides: str) -> Config:
        return configs.load(
            repository / "configs" / f"{name}.toml",
            [
                f"data={sums_file}",
                f"model={tiny_model}",
                "model.device=cpu",
                "model.precision=float32",
                "data.max_rows=24",
                f"reward.target={judges}",
                "reward.parameters={model = 'causal', max_order_gap = 1.0}",
                f"rollout.prompts_per_step={8 if name == 'pairwise_ppo' else 2}",
                "rollout.max_new_tokens=6",
                "optim.mini_batches=2",
                "optim.micro_batch=0",
                "optim.learning_rate=4e-4",
                "optim.warmup_steps=0",
                "method.critic.pretrain_steps=2",
                "eval.batch_size=4",
                "run.steps=2",
                "run.samples_every=1",
                "run.checkpoint_every=1",
                "run.report_to=[]",
                *overrides,
            ],
            saved=True,  # overrides choose for those before them
        )

    return make


BEST_OF_N = (
    "method.pairwise.anchors=best-of-n",
    "method.pairwise.n=3",
    "method.pairwise.selector_parameters={model = 'scalar', squash = 'none'}",
    "eval.prompts=4",
)


def finite(rows: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in rows] == [1, 2]
    assert any(row["grad_norm"] > 0 for row in rows)


def test_wins_over_anchors_that_a_reward_model_chose(
    miniature: Make, train: Any, tmp_path: Path
) -> None:
    config = miniature("pairwise_ppo", *BEST_OF_N, "method.pairwise.reward=log-odds")
    rows = train(config, transport=None)
    finite(rows)
    for row in rows:
        assert 0 < row["reward"] < 1
        assert row["order_gap"] > 0
        assert abs(row["shaped_reward"]) <= 5
        assert row["fault_ratio"] == 0
        assert set(row["verdicts"]) <= {"better", "worse"}
    anchors = read_rows(tmp_path / "run" / "anchors.jsonl")
    problems = load_problems(config.data, eval_prompts=4)
    keys = {key_of(problem) for problem in (*problems.train, *problems.eval)}
    assert {row["key"] for row in anchors} == keys
    assert len(anchors) == len(keys)
    assert all(row["judged"] <= row["of"] == 3 and row["score"] is not None for row in anchors)
    told = json.loads((tmp_path / "run" / "report.json").read_text())
    assert told["before"]["faults"] == told["after"]["faults"] == 0
    answers = json.loads((tmp_path / "run" / "eval_after.json").read_text())["answers"]
    assert {answer["verdict"] for answer in answers} <= {"better", "worse"}


@pytest.mark.parametrize("verifier", ["judge-pairwise", "judge-group"])
def test_a_group_is_its_own_baseline(
    miniature: Make, train: Any, tmp_path: Path, verifier: str
) -> None:
    config = miniature(
        "pairwise_group",
        f"reward.verifier={verifier}",
        "rollout.group_size=4",
        "method.pairwise.anchors=reference",
        "eval.prompts=4",
    )
    finite(train(config, transport=None))
    rows = read_rows(tmp_path / "run" / "samples.jsonl")
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["step"], row["draw"]), []).append(row)
    assert len(groups) == 4
    for group in groups.values():
        assert [row["fault"] for row in group] == [None] * 4
        assert sum(row["advantage"] for row in group) == pytest.approx(0, abs=1e-6)
        for row in group:
            assert row["advantage"] == pytest.approx(row["reward"] - 0.5, abs=1e-6)


def test_pairs_seen_differently_in_their_orders_are_faults_and_not_parity(
    miniature: Make, train: Any, tmp_path: Path
) -> None:
    strict = "reward.parameters={model = 'causal', max_order_gap = 0.02}"
    config = miniature("pairwise_ppo", strict, "reward.max_fault_ratio=1.0", "eval.prompts=0")
    train(config, transport=None)
    rows = read_rows(tmp_path / "run" / "samples.jsonl")
    reasons = {row["fault"] for row in rows}
    assert "ORDER_GAP" in reasons
    for row in rows:
        if row["fault"] is not None:
            assert row["reward"] is None
            assert row["advantage"] == 0
