"""Q and V on features of a policy that stands still (Digi-Q, arXiv 2502.15760).

Features of a state are the last hidden state of its last token, those of an action in it these, and
the mean of the last hidden states of the action's tokens. Two heads of one hidden layer learn

    Q(s, a)  ->  r + gamma V'(s')
    V(s)     ->  Q'(s, a)              of the logged a

with V' and Q' slow copies. The mean of V's target over the data is the mean of Q over the logged
actions: values are those of the policy that made the episodes. [derivation]
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.trainer.algos.offline import td_targets

WIDTH, STEPS, LEARNING_RATE, SLOW = 128, 600, 3e-3, 0.05
"""Of the heads; every number is ours."""


@dataclass(frozen=True, slots=True)
class LoggedSteps:
    """Logged steps.

    Attributes:
        states_NF: features of the states.
        actions_NG: of the actions in them.
        rewards_N: of the steps.
        following_N: the place of the step behind each, long; -1 behind the last.
    """

    states_NF: torch.Tensor
    actions_NG: torch.Tensor
    rewards_N: torch.Tensor
    following_N: torch.Tensor


class ActionValues(nn.Module):
    """Both heads, each behind a scaling of its features.

    Args:
        experience: whose features say how they are scaled.
        seed: of the heads' weights.
    """

    def __init__(self, experience: LoggedSteps, seed: int) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._q = _head(experience.actions_NG)
            self._v = _head(experience.states_NF)

    def q(self, actions_NG: torch.Tensor) -> torch.Tensor:
        """Q(s, a), (N,), of features of actions."""
        found: torch.Tensor = self._q(actions_NG)
        return found.squeeze(-1)

    def v(self, states_NF: torch.Tensor) -> torch.Tensor:
        """V(s), (N,), of features of states."""
        found: torch.Tensor = self._v(states_NF)
        return found.squeeze(-1)


class _Scaled(nn.Module):
    """Less the mean of some features, over their deviation."""

    def __init__(self, some_NF: torch.Tensor) -> None:
        super().__init__()
        self.mean_F = nn.Buffer(some_NF.mean(dim=0))
        self.scale_F = nn.Buffer(some_NF.std(dim=0, correction=0).clamp(min=1e-6))

    def forward(self, some_NF: torch.Tensor) -> torch.Tensor:
        return (some_NF - self.mean_F) / self.scale_F


def _head(some_NF: torch.Tensor) -> nn.Sequential:
    wide = nn.Linear(some_NF.shape[1], WIDTH)
    return nn.Sequential(_Scaled(some_NF), wide, nn.ReLU(), nn.Linear(WIDTH, 1))


def fit(
    experience: LoggedSteps, *, gamma: float, seed: int, steps: int = STEPS
) -> tuple[ActionValues, float]:
    """Both heads by temporal differences on all steps at once, and Q's last mean squared error."""
    values = ActionValues(experience, seed)
    slow = copy.deepcopy(values)
    optimizer = torch.optim.AdamW(values.parameters(), lr=LEARNING_RATE)
    ends_N = experience.following_N < 0
    error = torch.zeros(())
    for _ in range(steps):
        with torch.no_grad():
            next_N = slow.v(experience.states_NF)[experience.following_N.clamp(min=0)]
            targets_N = td_targets(experience.rewards_N, next_N, ends_N, gamma=gamma)
            logged_N = slow.q(experience.actions_NG)
        error = (values.q(experience.actions_NG) - targets_N).square().mean()
        loss = error + (values.v(experience.states_NF) - logged_N).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(slow.parameters(), values.parameters(), strict=True):
                old.lerp_(new, SLOW)
    return values.eval().requires_grad_(requires_grad=False), float(error.detach())


@torch.no_grad()
def features(
    model: Any, rows: Sequence[tuple[Sequence[int], Sequence[int]]], *, pad_id: int, at_once: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Features of states, (N, F), and of actions, (N, 2 F), float32, on the host.

    Args:
        model: a causal model of transformers; it does not change.
        rows: tokens of a state, at least one, and of an action in it; the mean over no token is 0.
        pad_id: stands behind shorter rows.
        at_once: rows of a forward pass.
    """
    states, actions = [], []
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        width = max(len(state) + len(action) for state, action in some)
        whole = [[*state, *action] for state, action in some]
        ids_BT = torch.tensor([one + [pad_id] * (width - len(one)) for one in whole])
        mask_BT = torch.tensor([[1] * len(one) + [0] * (width - len(one)) for one in whole])
        out = model(
            input_ids=ids_BT.to(model.device),
            attention_mask=mask_BT.to(model.device),
            output_hidden_states=True,
        )
        hidden_BTF = out.hidden_states[-1].float().cpu()
        for number, (state, action) in enumerate(some):
            own_TF = hidden_BTF[number, len(state) : len(state) + len(action)]
            states.append(hidden_BTF[number, len(state) - 1])
            mean_F = own_TF.sum(dim=0) / max(1, len(action))
            actions.append(torch.cat([states[-1], mean_F]))
    return torch.stack(states), torch.stack(actions)
