"""Rollouts beside the training: the gate, the rules, the policy's shadow, a step in parts."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.algos.packing import Packing
from assay.trainer.core import build
from assay.trainer.core.hooks import hooks_of
from assay.trainer.methods.asynchrony.method import make_background_source
from assay.trainer.methods.asynchrony.periodic import Iteration, provisional
from assay.trainer.methods.asynchrony.settings import admits, portion_prompts
from assay.trainer.methods.asynchrony.shadow import Shadow
from assay.trainer.settings import config as configs

BOUNDED = ("method.asynchrony.mode=bounded",)
TRUNCATED = " ".join(
    (
        "method.advantage.estimator=gae",
        "method.critic.pretrain_steps=1",
        "method.truncation.window=9",
    )
)
PERIODIC = ("method.asynchrony.mode=periodic", "optim.micro_batch=8")


@pytest.mark.parametrize(
    ("rollout", "version", "eta", "admitted"),
    [
        (1, 0, 0, True),
        (8, 0, 0, True),
        (9, 0, 0, False),  # floor(8 / 8) = 1 > 0
        (9, 1, 0, True),
        (9, 0, 1, True),
        (16, 0, 1, True),
        (17, 0, 1, False),
        (41, 1, 4, True),
        (49, 1, 4, False),
    ],
)
def test_the_gate(rollout: int, version: int, eta: int, admitted: bool) -> None:
    """Batches of 8; floor((n - 1) / B) <= i + eta (arXiv 2505.24298)."""
    assert admits(rollout, batch=8, version=version, max_staleness=eta) is admitted


@pytest.mark.parametrize(
    ("mode", "override", "told"),
    [
        (BOUNDED, "rollout.backend=paged", "rollout.backend"),
        (BOUNDED, "method.dynamic_sampling.enabled=true", "method.dynamic_sampling.enabled"),
        (BOUNDED, "data.selection.name=mopps", "data.selection.name"),
        (BOUNDED, "method.replay.groups=8", "method.replay.groups"),
        (BOUNDED, "method.recomposition.groups=8", "method.recomposition.groups"),
        (
            BOUNDED,
            "method.advantage.estimator=segments method.advantage.scale=none",
            "method.advantage.estimator",
        ),
        (BOUNDED, TRUNCATED, "method.truncation.window"),
        (BOUNDED, "method.cotraining.enabled=true", "method.cotraining.enabled"),
        (PERIODIC, "method.advantage.estimator=gae", "method.advantage.estimator"),
        (
            PERIODIC,
            "method.advantage.estimator=segments method.advantage.scale=none",
            "method.advantage.estimator",
        ),
        (PERIODIC, "method.loss.positive_lm_coef=0.1", "method.loss.positive_lm_coef"),
        (PERIODIC, "method.advantage.scale=task", "method.advantage.scale"),
        (PERIODIC, "method.advantage.difficulty=exp", "method.advantage.difficulty"),
        (PERIODIC, "method.advantage.normalise=batch", "method.advantage.normalise"),
        (PERIODIC, "method.advantage.max_sigma=3", "method.advantage.max_sigma"),
        (PERIODIC, "method.filter.prof=both", "method.filter.prof"),
    ],
)
def test_a_part_that_asynchrony_does_not_go_with_is_named_with_it(
    mode: tuple[str, ...], override: str, told: str
) -> None:
    message = refused(mode, override)
    part = {"bounded": "asynchronous-rollouts", "periodic": "periodic-asynchrony"}
    name = part[mode[0].partition("=")[2]]
    assert f"{name} (method.asynchrony.mode)" in message
    assert told in message
    assert message.endswith("Leave one of them out")


@pytest.mark.parametrize(
    ("override", "needed"),
    [
        ("optim.mini_batches=2", "optim.mini_batches = 1"),
        ("optim.epochs=2", "optim.mini_batches = 1"),
        ("optim.micro_batch=0", "optim.micro_batch of which some"),
        ("optim.micro_batch=32", "optim.micro_batch of which some"),
        ("method.advantage.scale=batch", "method.advantage.scale = "),
    ],
)
def test_sizes_that_a_step_in_parts_does_not_go_with_are_said(override: str, needed: str) -> None:
    message = refused(PERIODIC, override)
    assert f'test: method.asynchrony.mode = "periodic" needs {needed}' in message


def refused(mode: tuple[str, ...], override: str) -> str:
    """The line that refuses it; without asynchrony it is none."""
    with pytest.raises(ConfigError) as caught:
        configs.build({}, [*mode, *override.split()], origin="test")
    message = str(caught.value)
    assert "\n" not in message
    configs.build({}, [*mode, *override.split(), "method.asynchrony.mode=off"], origin="test")
    return message


def test_what_asynchrony_goes_with() -> None:
    configs.build({}, [*BOUNDED, "method.advantage.estimator=gae"], origin="test")
    for mode in (BOUNDED, PERIODIC):
        for override in ("method.fire.enabled=true", "model.lora.rank=4"):
            configs.build({}, [*mode, override], origin="test")
    for override in ("method.dense.mix=interpolate", "method.dense.decay_to=0.01"):
        configs.build({}, [*PERIODIC, "method.dense.weight=0.1", override], origin="test")


def test_periodic_trains_in_one_process() -> None:
    periodic, bounded = (configs.build({}, mode, origin="test") for mode in (PERIODIC, BOUNDED))
    with pytest.raises(ConfigError, match="trains in one process"):
        build.check_processes(periodic, 2, hooks_of(periodic))
    build.check_processes(bounded, 2, hooks_of(bounded))


@pytest.mark.parametrize(
    ("group_size", "micro_batch", "prompts"), [(4, 8, 2), (8, 4, 1), (4, 4, 1), (6, 4, 2)]
)
def test_a_portion_is_whole_groups_and_whole_micro_batches(
    group_size: int, micro_batch: int, prompts: int
) -> None:
    sizes = (f"rollout.group_size={group_size}", f"optim.micro_batch={micro_batch}")
    config = configs.build({}, sizes, origin="test")
    assert portion_prompts(config) == prompts


# The shadow.


class Small(torch.nn.Module):
    """Two layers with tied weights, and a frozen one."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(3, 3, bias=False)
        self.frozen = torch.nn.Linear(3, 3, bias=False).requires_grad_(False)
        self.last = torch.nn.Linear(3, 3, bias=False)
        self.last.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.last(self.frozen(self.first(x)))
        return out


def memory(model: Any) -> list[int]:
    return [weight.data_ptr() for weight in model.parameters()]


def test_a_shadow_answers_with_the_weights_that_it_wears() -> None:
    torch.manual_seed(0)
    policy, x = Small().train(), torch.ones(1, 3)
    shadow = Shadow(policy)
    assert memory(shadow.model) == memory(policy), "nothing is there twice"
    before, kept = policy(x), shadow.copied()
    shadow.wear(kept)
    with torch.no_grad():
        policy.first.weight.mul_(2)
    assert torch.equal(shadow.model(x), before)
    assert not torch.equal(policy(x), before)
    shadow.wear(shadow.copied())
    assert torch.equal(shadow.model(x), policy(x))
    assert shadow.model.first.weight is shadow.model.last.weight
    assert memory(shadow.model.frozen) == memory(policy.frozen)
    assert (policy.training, shadow.model.training) == (True, False)
    assert not {id(w) for w in policy.parameters()} & {id(w) for w in shadow.model.parameters()}


def test_a_shadow_that_shares_follows_the_policy() -> None:
    policy, x = Small(), torch.ones(1, 3)
    shadow = Shadow(policy, shares=True)
    shadow.wear(shadow.copied())
    with torch.no_grad():
        policy.first.weight.mul_(2)
    assert torch.equal(shadow.model(x), policy(x))
    assert memory(shadow.model) == memory(policy)


# A step in parts.


def parts(policy: torch.nn.Module, config: configs.Config, *, faulty: bool = False) -> Iteration:
    """A step of two micro-batches of two rows, of different widths."""
    rows = {
        "advantages": [torch.tensor([[1.0, 1.0], [-1.0, -1.0]]), torch.ones(2, 3)],
        "loss_mask": [
            torch.tensor([[True, True], [True, False]]),
            torch.tensor([[True, True, True], [not faulty, False, False]]),
        ],
        "rewards": [torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])],
        "correct": [torch.tensor([True, False]), torch.tensor([True, True])],
        "prompt_mask": [torch.ones(2, 1).long(), torch.ones(2, 1).long()],
        "completion_mask": [torch.tensor([[1, 1], [1, 0]]), torch.tensor([[1, 1, 1], [1, 0, 0]])],
    }
    batches = iter([{name: values[n] for name, values in rows.items()} for n in range(2)])

    def groups() -> Iterator[list[Any]]:
        yield []
        yield []

    return Iteration(
        groups(),
        lambda _groups: next(batches),
        config,
        Packing(config.optim.micro_batch),
        torch.device("cpu"),
    )


@pytest.mark.parametrize(
    ("aggregation", "faulty", "denominator"),
    [
        ("token-mean", False, 7.0),
        ("token-mean", True, 6.0),
        ("seq-mean-token-sum", False, 4.0),
        ("seq-mean-token-sum", True, 3.0),
    ],
)
def test_gradients_are_those_of_the_mean_over_what_was_there(
    aggregation: str, faulty: bool, denominator: float
) -> None:
    settings = (
        f"method.loss.aggregation={aggregation}",
        "rollout.prompts_per_step=2",
        "rollout.group_size=2",
        "rollout.max_new_tokens=3",
        "optim.micro_batch=2",
        "method.asynchrony.mode=periodic",
    )
    config = configs.build({}, settings, origin="test")
    assert provisional(config)["window_tokens"] == 16.0
    policy = Small()
    iteration = parts(policy, config, faulty=faulty)
    given = "window_tokens" if aggregation == "token-mean" else "window_rows"
    reported, whole = torch.zeros(()), torch.zeros(())
    alone = copy.deepcopy(policy)
    for number in range(2):
        micro = iteration.following()
        total = (micro["advantages"] * micro["loss_mask"]).sum()
        loss = total * policy(torch.ones(1, 3)).sum() / micro[given]
        loss.backward()
        reported += iteration.settled(loss.detach(), policy.parameters())
        share = total * alone(torch.ones(1, 3)).sum() / denominator
        share.backward()
        whole += share.detach()
        assert iteration.left == 2 - 2 * number
    torch.testing.assert_close(policy.first.weight.grad, alone.first.weight.grad)
    torch.testing.assert_close(reported, whole)
    seen = iteration.seen()
    assert seen["advantages"].shape == seen["loss_mask"].shape == (4, 3)
    assert int(seen["loss_mask"].sum()) == int(iteration.tokens) == (6 if faulty else 7)


def test_sharded_weights_are_refused() -> None:
    from accelerate.utils import DistributedType

    trainer: Any = SimpleNamespace(
        accelerator=SimpleNamespace(distributed_type=DistributedType.FSDP)
    )
    config = configs.build({}, BOUNDED, origin="test")
    unused: Any = SimpleNamespace()
    shop = build.Workshop(trainer, config, unused, unused, unused, ())
    with pytest.raises(ConfigError, match="needs all weights on each process"):
        make_background_source(shop, Shadow(Small()))
