"""Credit of agents and of turns within episodes. Pure.

agent      R_k = sum of r_j over the turns j of agent k           Dr. MAS (arXiv 2602.08847)
turn       G_j = sum over m >= 0 of g^m r_(j+m)                   UI-S1 (arXiv 2509.11543)
compared   A = R - mean of R over the units of one key, or an     MARS (arXiv 2510.15414), search
           estimator's other form of it                           self-play (arXiv 2510.18821)
utterance  A_j = sum over m >= 0 of (g lam)^m delta_(j+m),        ArCHer (arXiv 2402.19446)
           delta_j = r_j + g V_(j+1) - V_j
joined     GAE over an agent's tokens, as if its turns stood      [derivation: algos.turns, for
           side by side                                           each agent]

where j + m counts an agent's later turns in order of time, and V_j is the value before turn j.

Differences from the papers:
1. A unit without a known reward (NaN) is in no mean; it, and one that stands alone, has 0.
2. ArCHer learns Q and V off-policy, each twice. Here is one V, of the step's own episodes, and
   Q(s, u) is r + g V(s'); lam = 0 is its advantage. [derivation]
3. Of several agents each has its own sequence of turns. [derivation]

Shapes: B rows, T tokens, U units (turns or agents) of a row at most, N units of a batch, K keys.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from assay.trainer.algos import gae

Estimate = Callable[..., torch.Tensor]
"""Values (K, M) of M samples of each key, NaN where unknown, and `tasks_P` (K,), to advantages."""


@dataclass(frozen=True, slots=True)
class Units:
    """What is compared in place of whole responses.

    Attributes:
        unit_BT: number of a token's unit within its row, from 1; 0 for none.
        keys_BU: units of one key in a group of samples are compared; 0 for none or not known.
        values_BU: what each earned.
        weight: of these advantages.
        whole_weight: of the whole response's.
    """

    unit_BT: torch.Tensor
    keys_BU: torch.Tensor
    values_BU: torch.Tensor
    weight: float = 1.0
    whole_weight: float = 0.0


def by_unit(x_BT: torch.Tensor, unit_BT: torch.Tensor) -> torch.Tensor:
    """The sum of x over the tokens of each unit, shape (B, U); at least one column."""
    units = max(1, int(unit_BT.max()))
    sums_BU = torch.zeros(len(x_BT), units + 1, dtype=x_BT.dtype, device=x_BT.device)
    return sums_BU.scatter_add_(1, unit_BT, x_BT)[:, 1:]


def of_unit(x_BT: torch.Tensor, unit_BT: torch.Tensor) -> torch.Tensor:
    """What a unit's tokens have in common, x >= 0, shape (B, U); 0 where there is none."""
    units = max(1, int(unit_BT.max()))
    found_BU = torch.zeros(len(x_BT), units + 1, dtype=x_BT.dtype, device=x_BT.device)
    return found_BU.scatter_reduce_(1, unit_BT, x_BT, "amax")[:, 1:]


def to_tokens(x_BU: torch.Tensor, unit_BT: torch.Tensor) -> torch.Tensor:
    """Gives each token its unit's x, shape (B, T); 0 for tokens of none."""
    return torch.nn.functional.pad(x_BU, (1, 0)).gather(1, unit_BT)


def first_tokens(turn_BT: torch.Tensor) -> torch.Tensor:
    """Where a turn begins, bool, shape (B, T); a turn's tokens are neighbours."""
    before_BT = torch.nn.functional.pad(turn_BT[:, :-1], (1, 0))
    return (turn_BT > 0) & (turn_BT != before_BT)


def returns_to_go(
    rewards_BU: torch.Tensor, agents_BU: torch.Tensor, discount: float = 1.0
) -> torch.Tensor:
    """G_j = sum over m >= 0 of discount^m r_(j+m), for each agent: UI-S1 (arXiv 2509.11543).

    Columns are turns in order of time; `agents_BU` counts from 1, 0 where there is no turn, which
    has 0 in the result, shape (B, U).
    """
    return _scanned(rewards_BU, _following(agents_BU), agents_BU > 0, discount)


def within(agents_BU: torch.Tensor, contexts_BU: torch.Tensor) -> torch.Tensor:
    """Agents, for `returns_to_go`, that are others in each conversation (contexts from 0)."""
    several = int(contexts_BU.max()) + 1
    return torch.where(agents_BU > 0, (agents_BU - 1) * several + contexts_BU + 1, 0)


def unit_advantages(
    keys_BU: torch.Tensor,
    values_BU: torch.Tensor,
    estimate: Estimate,
    *,
    group_size: int,
    tasks_P: torch.Tensor,
) -> torch.Tensor:
    """Advantages of units, by the others of their key in their group; shape (B, U).

    Args:
        keys_BU: of `Units`, for whole groups of `group_size` rows.
        values_BU: of `Units`.
        estimate: such as advantages.group_advantages.
        group_size: rows of a group.
        tasks_P: the task of each group.
    """
    held_BU = keys_BU != 0
    groups_B = torch.arange(len(keys_BU), device=keys_BU.device) // group_size
    groups_N = groups_B.unsqueeze(1).expand_as(keys_BU)[held_BU]
    if not len(groups_N):
        return torch.zeros_like(values_BU)
    pairs_N2 = torch.stack([groups_N, keys_BU[held_BU]], dim=1)
    found_K2, key_N, count_K = pairs_N2.unique(dim=0, return_inverse=True, return_counts=True)
    order_N = key_N.argsort(stable=True)
    starts_K = count_K.cumsum(0) - count_K
    place_N = torch.empty_like(key_N)
    place_N[order_N] = torch.arange(len(key_N), device=key_N.device) - starts_K[key_N[order_N]]
    table_KM = values_BU.new_full((len(found_K2), int(count_K.max())), float("nan"))
    table_KM[key_N, place_N] = values_BU[held_BU]
    advantages_KM = estimate(table_KM, tasks_P=tasks_P[found_K2[:, 0]])
    advantages_BU = torch.zeros_like(values_BU)
    advantages_BU[held_BU] = advantages_KM[key_N, place_N]
    return advantages_BU


def agent_gae(
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    turn_BT: torch.Tensor,
    agent_BT: torch.Tensor,
    gamma: float = 1.0,
    lam_actor: gae.Lambda = 1.0,
    lam_critic: gae.Lambda = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """algos.turns.turn_gae of joined turns, for each agent, in order of time. [derivation].

    `turn_BT` and `agent_BT` count from 1, 0 for tokens of none.
    """
    whole_2BT = values_BT.new_zeros(2, *values_BT.shape)
    keep_BT, last = mask_BT.bool(), int(turn_BT.max()) + 1
    for agent in range(1, int(agent_BT.max()) + 1):
        own_BT = keep_BT & (agent_BT == agent)
        order_BT = torch.where(own_BT, turn_BT, last).argsort(dim=1, stable=True)
        joined = gae.decoupled_gae(
            *(x.gather(1, order_BT) for x in (rewards_BT, values_BT, own_BT)),
            gamma=gamma,
            lam_actor=lam_actor,
            lam_critic=lam_critic,
        )
        whole_2BT += torch.stack([torch.zeros_like(x).scatter(1, order_BT, x) for x in joined])
    return whole_2BT[0], whole_2BT[1]


def utterance_gae(
    rewards_BT: torch.Tensor,
    values_BT: torch.Tensor,
    mask_BT: torch.Tensor,
    *,
    turn_BT: torch.Tensor,
    agent_BT: torch.Tensor,
    discount: float = 1.0,
    gamma: float = 1.0,
    lam_actor: gae.Lambda = 0.0,
    lam_critic: gae.Lambda = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """One advantage for all tokens of a turn, by the values before turns (arXiv 2402.19446).

    A_j = sum over m >= 0 of (discount lam)^m delta_(j+m), delta_j = r_j + discount V_(j+1) - V_j:
    r_j is the sum of the turn's token rewards, V_j the value at its first token, 0 behind an
    agent's last turn. `turn_BT` and `agent_BT` count from 1; `gamma` is unread. The rest is as for
    algos.turns.turn_gae.

    Returns:
        Advantages on all of a turn's tokens, and targets A_j (lam_critic) + V_j on its first; 0
        elsewhere, shape (B, T).
    """
    del gamma
    keep_BT = mask_BT.bool()
    turn_BT = torch.where(keep_BT, turn_BT, 0)
    first_BT = first_tokens(turn_BT)
    rewards_BU = by_unit(torch.where(keep_BT, rewards_BT.double(), 0.0), turn_BT)
    values_BU = by_unit(torch.where(first_BT, values_BT.double(), 0.0), turn_BT)
    agents_BU = of_unit(torch.where(keep_BT, agent_BT, 0), turn_BT)
    following_BU, is_turn_BU = _following(agents_BU), agents_BU > 0
    next_BU = torch.nn.functional.pad(values_BU, (0, 1)).gather(1, following_BU)
    delta_BU = torch.where(is_turn_BU, rewards_BU + discount * next_BU - values_BU, 0.0)
    actor_BU, critic_BU = (
        _scanned(delta_BU, following_BU, is_turn_BU, discount * _column(lam, delta_BU))
        for lam in (lam_actor, lam_critic)
    )
    targets_BT = torch.where(first_BT, to_tokens(critic_BU + values_BU, turn_BT), 0.0)
    return to_tokens(actor_BU, turn_BT).to(values_BT.dtype), targets_BT.to(values_BT.dtype)


def _column(lam: gae.Lambda, like: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(lam, dtype=like.dtype, device=like.device).reshape(-1, 1)


def _following(agents_BU: torch.Tensor) -> torch.Tensor:
    """The column of the same agent's next turn; U where there is none."""
    turns = agents_BU.shape[1]
    columns_U = torch.arange(turns, device=agents_BU.device)
    later_UU = columns_U.unsqueeze(0) > columns_U.unsqueeze(1)
    same_BUU = (agents_BU.unsqueeze(2) == agents_BU.unsqueeze(1)) & later_UU
    return torch.where(same_BUU, columns_U, turns).amin(dim=2)


def _scanned(
    x_BU: torch.Tensor,
    following_BU: torch.Tensor,
    is_turn_BU: torch.Tensor,
    decay: float | torch.Tensor,
) -> torch.Tensor:
    """y_j = x_j + decay * y of the same agent's next turn; 0 where there is no turn."""
    decay_B1 = torch.as_tensor(decay, dtype=x_BU.dtype, device=x_BU.device).reshape(-1, 1)
    found = torch.nn.functional.pad(torch.zeros_like(x_BU), (0, 1))
    for turn in range(x_BU.shape[1] - 1, -1, -1):
        later_B1 = found.gather(1, following_BU[:, turn : turn + 1])
        found[:, turn : turn + 1] = x_BU[:, turn : turn + 1] + decay_B1 * later_B1
    return torch.where(is_turn_BU, found[:, :-1], 0.0)
