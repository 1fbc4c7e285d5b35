"""A faulted sample never reaches the loss; too many of them stop the run."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.trainer.errors import TrainingStoppedError
from trainer_support import built_trainer

Train = Callable[..., list[dict[str, Any]]]
MakeConfig = Callable[..., Any]


@contextmanager
def trainer_and_batch(
    config: Any, folder: Path, transport: Any
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """A trainer before its first step, and the batch of that step."""
    with built_trainer(config, folder, transport) as trainer:
        trainer.current_gradient_accumulation_steps = 1
        yield trainer, trainer._generate_and_score_completions([])


def gradient(trainer: Any, batch: dict[str, Any]) -> tuple[float, torch.Tensor]:
    """Loss and gradient of a batch that is a whole mini-batch."""
    batch = trainer._counted(batch)
    trainer.model.zero_grad()
    loss = trainer._compute_loss(trainer.model, batch)
    loss.backward()
    return loss.item(), torch.cat([p.grad.flatten().clone() for p in trainer.model.parameters()])


@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean", "constant"])
def test_the_loss_is_that_of_the_batch_without_the_faulted_rows(
    tiny_config: MakeConfig, exact_transport: Any, tmp_path: Path, aggregation: str
) -> None:
    config = tiny_config(
        method={"loss": {"aggregation": aggregation, "kl_coef": 0.1, "positive_lm_coef": 0.1}},
        rollout={"prompts_per_step": 4, "group_size": 4},
    )
    transport = exact_transport(lambda _call, item: int(item.id) % 3 == 1)
    with trainer_and_batch(config, tmp_path, transport) as (trainer, batch):
        judged_B = ~batch["rewards"].isnan()
        assert transport.faults == 5 == int((~judged_B).sum())
        assert not batch["advantages"][~judged_B].any()
        assert not batch["loss_mask"][~judged_B].any()
        with torch.no_grad():  # a KL that is not 0, so that its part in the loss shows
            for parameter in trainer.model.parameters():
                parameter.add_(
                    0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(0))
                )
        spread_B = torch.where(judged_B, torch.linspace(-1, 1, 16), 0.0)
        batch["advantages"] = spread_B[:, None] * batch["completion_mask"]
        loss, grad = gradient(trainer, dict(batch))
        assert loss != 0
        assert grad.norm() > 0

        without = {name: value[judged_B] for name, value in batch.items()}
        without_loss, without_grad = gradient(trainer, without)
        assert loss == pytest.approx(without_loss, abs=1e-6)
        assert torch.allclose(grad, without_grad, atol=1e-6)

        other_ids = torch.randint_like(batch["completion_ids"], 4, 90)
        batch["completion_ids"] = torch.where(judged_B[:, None], batch["completion_ids"], other_ids)
        other_loss, other_grad = gradient(trainer, batch)
        assert loss == pytest.approx(other_loss, abs=1e-7)
        assert torch.allclose(grad, other_grad, atol=1e-7)


def test_faults_are_reported_and_the_rest_is_trained_on(
    tiny_config: MakeConfig, train: Train, exact_transport: Any
) -> None:
    config = tiny_config(reward={"max_fault_ratio": 0.9, "verifier": "exact"})
    rows = train(
        config,
        transport=lambda: exact_transport(lambda call, item: int(item.id) % 4 == 0 and call > 0),
    )
    assert [row["fault_ratio"] for row in rows] == [0.25] * 4
    assert all(row["faults"] == {"WORKER_DIED": 16} for row in rows)
    assert all(row["grad_norm"] > 0 for row in rows)


def weights(folder: Path) -> bytes:
    return (folder / "model" / "model.safetensors").read_bytes()


def test_a_step_without_a_judgement_moves_nothing(
    tiny_config: MakeConfig, train: Train, exact_transport: Any, tmp_path: Path
) -> None:
    """Not by the optimizer's momentum either."""
    lenient = {"reward": {"max_fault_ratio": 1.0}, "eval": {"prompts": 0}}
    train(tiny_config(run={"steps": 1}, **lenient), "one")
    rows = train(
        tiny_config(run={"steps": 2}, **lenient),
        "two",
        transport=lambda: exact_transport(lambda call, _item: call == 1),
    )
    assert [row["fault_ratio"] for row in rows] == [0.0, 1.0]
    assert rows[1]["reward"] is None
    assert rows[1]["loss"] == 0
    assert weights(tmp_path / "one") == weights(tmp_path / "two")


def test_too_many_faults_stop_the_run_and_it_can_go_on(
    tiny_config: MakeConfig, train: Train, exact_transport: Any, tmp_path: Path
) -> None:
    config = tiny_config(
        run={"steps": 6}, reward={"max_fault_ratio": 0.3, "fault_window": 2}, eval={"prompts": 0}
    )
    with pytest.raises(TrainingStoppedError) as caught:
        train(
            config,
            transport=lambda: exact_transport(
                lambda call, item: call >= 2 and int(item.id) % 2 == 0
            ),
        )
    said = str(caught.value)
    assert (
        "stopped after step 4: 64 of the last 128 samples had no judgement (WORKER_DIED x64)"
        in said
    )
    assert "continue with `assay train --resume" in said
    assert "\n" not in said
    assert (tmp_path / "run" / "checkpoints" / "checkpoint-4").is_dir()
    rows = train(config)
    assert [row["step"] for row in rows] == list(range(1, 7))
    assert [row["fault_ratio"] for row in rows] == [0, 0, 0.5, 0.5, 0, 0]


def test_faults_of_continuations_stop_a_run_too(
    tiny_config: MakeConfig, train: Train, exact_transport: Any
) -> None:
    """Every response of the batch is judged, and no continuation of one is."""
    segments = {"unsure_per_segment": 1, "continuations": 2}
    config = tiny_config(
        method={
            "advantage": {"estimator": "segments", "scale": "none"}, "segments": segments
        },
        reward={"max_fault_ratio": 0.3, "fault_window": 1},
        rollout={"prompts_per_step": 2, "group_size": 2},
        eval={"prompts": 0},
    )  # fmt: skip
    asked = 0

    def later(_call: int, _item: Any) -> bool:
        nonlocal asked
        asked += 1
        return asked > 4

    with pytest.raises(
        TrainingStoppedError, match=r"stopped after step 1: \d+ of the last"
    ) as told:
        train(config, transport=lambda: exact_transport(later))
    found = re.search(r"(\d+) of the last (\d+) samples", str(told.value))
    assert found is not None
    assert int(found[1]) == int(found[2]) - 4 == asked - 4 > 0


@pytest.mark.parametrize(
    ("of_survey", "told"),
    [(0, "stopped after the prompts were scored: 98 of"), (1, "stopped after step 3: 98 of the")],
)
def test_faults_of_a_survey_stop_a_run_too(
    tiny_config: MakeConfig, train: Train, exact_transport: Any, of_survey: int, told: str
) -> None:
    """Of the one before training, or of one between two steps; every rollout is judged."""
    config = tiny_config(
        data={"selection": {"name": "vas", "vas": {"refresh_every": 2, "samples": 2}}},
        reward={"max_fault_ratio": 0.3, "fault_window": 1},
        rollout={"prompts_per_step": 2, "group_size": 2},
        eval={"prompts": 0},
    )
    steps, survey, asked = 4, 200, 0  # items of each; a step's have the numbers of the first four

    def faulty(_call: int, item: Any) -> bool:
        nonlocal asked
        asked += int(item.id) >= steps
        of_this = asked > 0 and (asked - 1) // (survey - steps) == of_survey
        return int(item.id) >= steps and of_this and int(item.id) % 2 == 0

    transport = exact_transport(faulty)
    with pytest.raises(TrainingStoppedError, match=told):
        train(config, transport=lambda: transport)
    assert transport.faults == 98


def test_a_service_that_is_away_for_a_moment_costs_nothing(
    tiny_config: MakeConfig, train: Train
) -> None:
    """Refused calls are tried again, and the run is the one that was never refused."""
    from assay.clients.testing import FakeRewardServer, Knobs

    def losses(name: str, knobs: Knobs) -> list[float]:
        with FakeRewardServer(knobs=knobs) as server:
            rows = train(
                tiny_config(reward={"target": server.address}, eval={"prompts": 0}),
                name,
                transport=None,
            )
        return [row["loss"] for row in rows]

    assert losses("troubled", Knobs(unavailable=2, queue_full=1)) == losses("calm", Knobs())
