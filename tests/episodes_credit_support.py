"""Episodes that nobody acted: hand-made rollouts of several agents and turns, and their batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.clients import Fault, Judgement, Result
from assay.environments.types import role_of
from assay.trainer.core import batch as batches
from assay.trainer.core.batch import Batch, Scored
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.data.problems import Problem
from assay.trainer.engines.types import Draw, Request, Response
from assay.trainer.rollouts.types import Acted, ActedTurn, Collected, Rollout
from assay.trainer.settings.config import Config, MethodSettings
from assay.trainer.settings.sections import RolloutConfig


@dataclass(frozen=True)
class Said:
    """A turn: who speaks, how many tokens, what it earns, and in which conversation."""

    agent: str = "policy"
    size: int = 2
    reward: float | None = None
    void: bool = False
    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Told:
    """An episode: its turns in order of time, and its reward; None for a fault."""

    said: Sequence[Said]
    reward: float | None = 1.0
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    task: str = "t"


def config_of(group_size: int, *, void: str = "none", **tables: Any) -> Config:
    """Settings of episodes with these tables of [method]."""
    from assay.kit import toml_config

    method = {"episodes": {"environment": "python"}, **tables}
    if void != "none":
        method["filter"] = {"void": void}
    built = toml_config.build(MethodSettings, method, origin="a test")
    return Config(method=built, rollout=RolloutConfig(group_size=group_size))


def rollout_of(told: Told, draw: int, index: int) -> Rollout:
    """Each agent has a conversation of its own; between turns stands a token of nobody."""
    agents = list(dict.fromkeys(said.agent for said in told.said))
    ids: list[int] = []
    turns: dict[int, ActedTurn] = {}
    contexts = []
    for number, agent in enumerate(agents):
        contexts.append(len(ids))
        if number:
            ids.append(90)  # its prompt
        for place, said in enumerate(told.said):
            if said.agent != agent:
                continue
            start = len(ids)
            ids += said.ids or range(10, 10 + said.size)
            turns[place] = ActedTurn(
                start, len(ids), number, agent, "", void=said.void, reward=said.reward
            )
            ids.append(91)  # an answer of a tool
    outcome = (
        Fault("WORKER_DIED", "gone")
        if told.reward is None
        else Judgement(told.reward, "correct" if told.reward > 0 else "incorrect")
    )
    acted = Acted(
        "python",
        "done",
        tuple(turns[place] for place in range(len(told.said))),
        tuple(contexts),
        dict(told.rewards),
    )
    problem = Problem(f"p{draw}", "q", (("user", "q"),), "a", task=told.task)
    response = Response(tuple(ids), "x", (-0.5,) * len(ids), False)
    request = Request(Draw(draw, problem, (1, 2, 3)), index)
    return Rollout(request, response, Result("0", outcome), 0, acted=acted)


def marked(config: Config, told: Sequence[Told]) -> tuple[Batch, tuple[Hooks, ...], list[Scored]]:
    """The batch of whole groups, with the columns of episodes, as methods mark it."""
    size = config.rollout.group_size
    rollouts = [rollout_of(one, n // size, n % size) for n, one in enumerate(told)]
    scored = [Scored(row, one.reward) for row, one in zip(rollouts, told, strict=True)]
    hooks = tuple(
        hook for hook in hooks_of(config) if "methods.episodes" not in type(hook).__module__
    )
    groups = [scored[n : n + size] for n in range(0, len(scored), size)]
    for hook in hooks:
        groups = hook.scored(groups)
    scored = [item for group in groups for item in group]
    batch = batches.pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
    batch |= columns(scored, batch)
    collected = Collected([tuple(rollouts[n : n + size]) for n in range(0, len(told), size)], [])
    for hook in hooks:
        batch = hook.mark(batch, scored, collected)
    return batch, hooks, scored


def columns(scored: Sequence[Scored], batch: Batch) -> Batch:
    """What method.episodes marks."""
    shape = batch["completion_ids"].shape
    turn, role = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.long)
    context, rewards = torch.zeros(shape, dtype=torch.long), torch.zeros(shape)
    roles: dict[str, int] = {}
    for row, item in enumerate(scored):
        assert isinstance(item.rollout, Rollout)
        acted = item.rollout.acted
        assert acted is not None
        for number, start in enumerate(acted.contexts):
            context[row, start:] = number
        last: dict[str, int] = {}
        for number, one in enumerate(acted.turns, start=1):
            turn[row, one.start : one.end] = number
            role[row, one.start : one.end] = roles.setdefault(role_of(one.agent), len(roles) + 1)
            rewards[row, one.end - 1] = one.reward or 0.0
            last[one.agent] = one.end - 1
        for agent, at in last.items():
            own = acted.rewards.get(agent, item.reward) if item.reward is not None else None
            rewards[row, at] += own or 0.0
    return {
        "turn": turn,
        "role": role,
        "context": context,
        "turn_rewards": rewards,
        "own": turn > 0,
        "loss_mask": batch["loss_mask"] & (turn > 0),
        "value_mask": (turn > 0) & (~batch["rewards"].isnan()).unsqueeze(1),
    }


def advantages(config: Config, told: Sequence[Told]) -> tuple[torch.Tensor, Batch]:
    """Advantages of tokens without a critic, and the batch."""
    batch, hooks, _ = marked(config, told)
    found = batches.group_advantages(
        batch, config.method.advantage, config.rollout.group_size, hooks=hooks
    )
    return batches.refined(found, batch, config.method.advantage), batch


def by_turn(x_BT: torch.Tensor, batch: Batch, row: int) -> list[float]:
    """What a row's turns have, in order of time; each turn has one number."""
    turn_T = batch["turn"][row]
    found = []
    for number in range(1, int(turn_T.max()) + 1):
        values = x_BT[row][turn_T == number]
        assert (values == values[0]).all(), "a turn's tokens have one number"
        found.append(float(values[0]))
    return found
