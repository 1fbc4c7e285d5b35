"""Credit of agents and turns, by hand: what each setting gives small episodes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.environments.registry import environment_of, settings_of
from assay.kit.errors import ConfigError
from assay.trainer.algos import episodes
from assay.trainer.core import batch as batches
from assay.trainer.core import objective
from assay.trainer.core.batch import Scored
from assay.trainer.core.hooks import hooks_of
from assay.trainer.critic.pretraining import monte_carlo_returns
from assay.trainer.methods.episodes.method import Acting
from assay.trainer.methods.turn_credit.keys import hashed, read_before
from assay.trainer.rollouts.types import Collected
from assay.trainer.settings import config as configs
from episodes_credit_support import (
    Said,
    Told,
    advantages,
    by_turn,
    config_of,
    marked,
    rollout_of,
)

PLAIN = {"scale": "none"}


def told_by(
    told: list[Told], *, size: int | None = None, advantage: Any = PLAIN, **credit: Any
) -> list[list[float]]:
    """Advantages of each episode's turns, in order of time."""
    config = config_of(size or len(told), turn_credit=credit, advantage=advantage)
    found, batch = advantages(config, told)
    return [by_turn(found, batch, row) for row in range(len(told))]


def turns(*rewards: float | None, agent: str = "policy") -> list[Said]:
    return [Said(agent, reward=reward) for reward in rewards]


def test_an_agent_is_compared_with_its_role_in_other_samples() -> None:
    """Proposers earn 1, 0, 0 and a fault; editors 2, 4, none known and a fault."""
    said = [Said("proposer"), Said("editor"), Said("proposer")]
    told = [
        Told(said, 0.0, {"proposer": 1.0, "editor": 2.0}),
        Told(said, 0.0, {"proposer": 0.0, "editor": 4.0}),
        Told(said, 0.0, {"proposer": 0.0, "editor": None}),
        Told(said, None),
    ]
    third = 1 / 3
    assert told_by(told, unit="agent") == [
        pytest.approx([2 * third, -1, 2 * third]),
        pytest.approx([-third, 1, -third]),
        pytest.approx([-third, 0, -third]),
        pytest.approx([0, 0, 0]),
    ]
    batch, _, _ = marked(config_of(4, turn_credit={"unit": "agent"}), told)
    trained = [by_turn(batch["loss_mask"], batch, row) for row in range(4)]
    assert trained == [[1, 1, 1], [1, 1, 1], [1, 0, 1], [0, 0, 0]]


def test_agents_together_have_one_mean_and_one_deviation() -> None:
    """Dr. MAS's global baseline: whoever earns ten times as much is all that is seen."""
    told = [
        Told([Said("one"), Said("other")], 0.0, {"one": 10.0, "other": 1.0}),
        Told([Said("one"), Said("other")], 0.0, {"one": 10.0, "other": 0.0}),
    ]
    assert told_by(told, unit="agent") == [[0.0, 0.5], [0.0, -0.5]]
    assert told_by(told, unit="agent", roles="together") == [[4.75, -4.25], [4.75, -5.25]]


def test_an_agent_earns_its_turns_too_and_rloo_leaves_itself_out() -> None:
    told = [Told(turns(0.5, None), 1.0), Told(turns(None), 0.0), Told(turns(0.5), 0.0)]
    assert told_by(told, unit="agent", advantage={"estimator": "rloo", "scale": "none"}) == [
        pytest.approx([1.25, 1.25]),  # 1.5 - (0 + 0.5) / 2
        pytest.approx([-1.0]),  # 0 - (1.5 + 0.5) / 2
        pytest.approx([-0.25]),
    ]


def test_agents_of_one_role_in_an_episode_are_samples_of_each_other() -> None:
    """Search self-play: the solvers of a question by themselves, proposers over episodes."""
    said = [Said("proposer"), Said("solver#1"), Said("solver#2"), Said("solver#3")]
    told = [
        Told(said, 0.0, {"proposer": 1 / 3, "solver#1": 1.0, "solver#2": 1.0, "solver#3": 0.0}),
        Told(said, 0.0, {"proposer": 1.0, "solver#1": 0.0, "solver#2": 0.0, "solver#3": None}),
    ]
    third = 1 / 3
    assert told_by(told, unit="agent") == [
        pytest.approx([-third, third, third, -2 * third]),
        pytest.approx([third, 0, 0, 0]),
    ]
    scaled = told_by(told, unit="agent", advantage={"scale": "group"})
    deviation = (1 / 3) ** 0.5  # of 1, 1, 0, unbiased
    assert scaled[0][3] == pytest.approx(-2 * third / (deviation + 1e-4), abs=1e-5)


def test_a_turn_earns_what_follows_and_is_compared_with_the_same_turn_of_its_role() -> None:
    told = [Told(turns(1.0, 0.0), 1.0), Told(turns(0.0, 2.0), 0.0), Told(turns(3.0), 0.0)]
    # returns: [2, 1], [2, 2], [3]; with 1/2: [1.5, 1], [1, 2], [3]
    third = 1 / 3
    assert told_by(told, unit="turn") == [
        pytest.approx([-third, -0.5]),
        pytest.approx([-third, 0.5]),
        pytest.approx([2 * third]),
    ]
    half = told_by(told, unit="turn", discount=0.5)
    assert half[0] == pytest.approx([1.5 - 11 / 6, -0.5])
    assert half[1] == pytest.approx([1 - 11 / 6, 0.5])


def test_turns_count_by_agent() -> None:
    """The second turn of an episode may be the first of its agent."""
    told = [
        Told([Said("a", reward=1.0), Said("b", reward=5.0)], 0.0),
        Told([Said("b", reward=3.0), Said("a", reward=0.0)], 0.0),
    ]
    assert told_by(told, unit="turn") == [[0.5, 1.0], [-1.0, -0.5]]


def test_equal_states_are_equal_tokens_before_a_turn() -> None:
    first, other = (11, 12), (11, 13)
    told = [
        Told([Said(ids=first), Said(ids=(20,), reward=1.0)], 0.0),
        Told([Said(ids=first), Said(ids=(21,), reward=0.0)], 0.0),
        Told([Said(ids=other), Said(ids=(22,), reward=7.0)], 0.0),
        Told([Said(ids=other), Said(ids=(20,), reward=7.0)], None),
    ]
    # all began at the prompt: returns 1, 0, 7 (mean 8/3); then 1 and 0 share a state
    assert told_by(told, unit="turn", compare="state") == [
        pytest.approx([1 - 8 / 3, 0.5]),
        pytest.approx([-8 / 3, -0.5]),
        pytest.approx([7 - 8 / 3, 0.0]),
        pytest.approx([0.0, 0.0]),
    ]


def test_a_later_conversation_begins_with_its_own_prompt() -> None:
    row = rollout_of(Told([Said("a", ids=(11,)), Said("b", ids=(12,)), Said("a")]), 0, 0)
    assert list(read_before(row, 0)) == [1, 2, 3]
    assert list(read_before(row, 2)) == [1, 2, 3, 11, 91]
    assert list(read_before(row, 1)) == [90]
    assert hashed("a", (1, 2)) != hashed("a", (1,), (2,))
    assert 0 < hashed("a") < 2**63


def test_steps_and_episodes_are_mixed() -> None:
    """UI-S1: w_s A_step + w_e A_episode; the whole episodes have -1 and 1."""
    told = [Told(turns(0.0, 2.0), 0.0), Told(turns(3.0, -1.0), 2.0)]
    step = told_by(told, unit="turn")  # returns [2, 2], [4, 1]
    assert step == [[-1.0, 0.5], [1.0, -0.5]]
    mixed = told_by(told, unit="turn", turn_weight=0.5, episode_weight=2.0)
    assert mixed == [[-2.5, -1.75], [2.5, 1.75]]
    assert told_by(told, unit="turn", turn_weight=0.0, episode_weight=1.0) == told_by(told)


def test_only_turns_above_their_mean_train() -> None:
    """DigiRL's filter of steps."""
    told = [Told(turns(1.0, 0.0), 0.0), Told(turns(0.0, 2.0), 0.0)]  # returns [1, 0], [2, 2]
    config = config_of(2, turn_credit={"unit": "turn", "keep": "positive"}, advantage=PLAIN)
    batch, hooks, _ = marked(config, told)
    batch["advantages"] = batches.group_advantages(batch, config.method.advantage, 2, hooks=hooks)
    for hook in hooks:
        hook.credited(batch, 2)
    assert [by_turn(batch["loss_mask"], batch, row) for row in range(2)] == [[0, 0], [1, 1]]


def test_negative_advantages_count_less_where_hardly_any_succeeds() -> None:
    """GUI-Libra: 0.5 + 1.5 * mean; a mean of 1/4 makes 0.875, one of 1/3 or more 1."""
    chosen = {"scale": "none", "negative": "success"}
    told = [Told(turns(None), reward) for reward in (1.0, 0.0, 0.0, 0.0)]
    assert told_by(told, advantage=chosen) == [[0.75], [-0.21875], [-0.21875], [-0.21875]]
    told = [Told(turns(None), reward) for reward in (1.0, 1.0, 0.0, None)]
    assert told_by(told, advantage=chosen)[2] == pytest.approx([-2 / 3])
    by_agent = told_by(
        told, unit="agent", advantage=chosen | {"negative_base": 0.25, "negative_slope": 0.375}
    )
    assert by_agent[2] == pytest.approx([-2 / 3 * 0.5])


# -- a critic -------------------------------------------------------------------------------------


def critic_columns(told: list[Told], values: Callable[[Any], Any], **tables: Any) -> Any:
    """Advantages and targets of turns with a critic that says `values` of the batch."""
    config = config_of(1, **tables)
    batch, hooks, _ = marked(config, told)
    batch["values"] = values(batch)
    found, targets, _ = batches.critic_advantages(batch, config.method, hooks)
    return found, targets, batches.value_mask(batch), batch


def ten_of_turn(batch: Any) -> torch.Tensor:
    """V is a tenth of the turn's number, whatever the token."""
    values: torch.Tensor = batch["turn"] / 10
    return values


def test_an_utterance_has_one_advantage_by_the_values_before_turns() -> None:
    """ArCHer: A = r + g V' - V with lambda 0, and its sum over turns with more."""
    told = [Told([Said(size=2, reward=1.0), Said(size=3), Said(size=1, reward=0.5)], 2.0)]
    credit = {"unit": "turn", "values": "turns", "discount": 0.5}
    advantage = {"estimator": "gae", "lam": 0.0}
    found, targets, mask, batch = critic_columns(
        told, ten_of_turn, turn_credit=credit, advantage=advantage, critic={"lam": 0.0}
    )
    deltas = [1 + 0.5 * 0.2 - 0.1, 0 + 0.5 * 0.3 - 0.2, 2.5 - 0.3]
    assert by_turn(found, batch, 0) == pytest.approx(deltas)
    first = episodes.first_tokens(batch["turn"])
    assert mask.equal(first)
    assert targets[first].tolist() == pytest.approx([1.1, 0.15, 2.5])
    assert not targets[~first].any()
    found, targets, *_ = critic_columns(
        told,
        ten_of_turn,
        turn_credit=credit,
        advantage=advantage | {"lam": 0.8},
        critic={"lam": 1.0},
    )
    second = deltas[1] + 0.4 * deltas[2]
    assert by_turn(found, batch, 0) == pytest.approx([deltas[0] + 0.4 * second, second, deltas[2]])
    assert targets[first].tolist() == pytest.approx([1 + 0.25 * 2.5, 1.25, 2.5])


def test_value_pretraining_learns_the_returns_of_turns_on_their_first_tokens() -> None:
    """Its mask has those alone, and rewards lie on the last."""
    told = [Told([Said(size=3, reward=1.0), Said(size=2), Said(size=2, reward=0.5)], 2.0)]
    config = config_of(
        1,
        turn_credit={"unit": "turn", "values": "turns", "discount": 0.5},
        advantage={"estimator": "gae"},
    )
    batch, hooks, _ = marked(config, told)
    rewards = batches.token_rewards(batch, config.method.loss, hooks, with_kl=False)
    mask = batches.value_mask(batch)
    estimate = batches.estimate_by(hooks, batch)
    assert estimate is not None
    returns = monte_carlo_returns(rewards, mask, gamma=1.0, estimate=estimate)
    assert returns[mask].tolist() == pytest.approx([1 + 0.25 * 2.5, 1.25, 2.5])


def test_independent_turns_do_not_see_later_rewards_and_agents_do() -> None:
    """With lambda 1 and no values: a turn earns its own, an agent all that follows."""
    said = [Said("a", reward=1.0), Said("b", reward=5.0), Said("a", reward=2.0)]
    told = [Told(said, 0.0), Told(said, None)]

    def nothing(batch: Any) -> torch.Tensor:
        return torch.zeros_like(batch["turn_rewards"])

    advantage = {"estimator": "gae", "lam": 1.0}
    for credit, expected in (
        ({"unit": "turn"}, [1, 5, 2]),
        ({"unit": "agent"}, [3, 5, 2]),
    ):
        found, _, mask, batch = critic_columns(
            told, nothing, turn_credit=credit, advantage=advantage
        )
        assert by_turn(found, batch, 0) == pytest.approx(expected)
        assert not found[1].any()
        assert not mask[1].any()
        assert mask[0].equal(batch["own"][0])


# -- six ways: RLOO, PPO, GRPO with and without rewards of turns ----------------------------------

GRID = {
    ("grpo", False): [[-0.5, -0.5], [0.5, 0.5]],
    ("grpo", True): [[0.25, 0.25], [-0.25, -0.25]],
    ("rloo", False): [[-1, -1], [1, 1]],
    ("rloo", True): [[0.5, 0.5], [-0.5, -0.5]],
    ("ppo", False): [[0, 0], [1, 1]],
    ("ppo", True): [[1.5, 0], [0, 1]],
}
"""Of episodes that earn 0 and 1 at the end, the first 1.5 in its first turn, too."""


@pytest.mark.parametrize(("estimator", "dense"), GRID)
def test_the_grid_of_estimators_and_turn_rewards(estimator: str, dense: bool) -> None:
    """The practitioner's guide (meow-tea-taro): three estimators, rewards of turns on and off."""
    reward = 1.5 if dense else None
    told = [Told(turns(reward, None), 0.0), Told(turns(None, None), 1.0)]
    if estimator == "ppo":
        found, _, _, batch = critic_columns(
            told, lambda b: torch.zeros_like(b["turn_rewards"]),
            turn_credit={"unit": "turn" if dense else "agent"},
            advantage={"estimator": "gae", "lam": 1.0},
        )  # fmt: skip
        rows = [by_turn(found, batch, row) for row in range(2)]
    else:
        chosen = {"estimator": "group" if estimator == "grpo" else "rloo", "scale": "none"}
        rows = told_by(told, unit="agent" if dense else "off", advantage=chosen)
    assert rows == [pytest.approx(row) for row in GRID[estimator, dense]]


# -- several agents -------------------------------------------------------------------------------


def test_normalising_by_role_takes_the_spike_of_a_loud_agent_away() -> None:
    """Dr. MAS: an agent whose rewards are 100 times the other's drowns its gradient; by role both
    have a deviation of 1, as have advantages by agent that are scaled."""
    generator = torch.Generator().manual_seed(0)
    told = [
        Told(
            [Said("quiet", size=3), Said("loud", size=3)],
            0.0,
            {
                "quiet": float(torch.randn((), generator=generator)),
                "loud": 100 * float(torch.randn((), generator=generator)),
            },
        )
        for _ in range(16)
    ]

    def spread(advantage: dict[str, Any], **credit: Any) -> list[float]:
        config = config_of(8, turn_credit=credit, advantage=advantage)
        found, batch = advantages(config, told)
        return [float(found[batch["role"] == role].norm()) for role in (1, 2)]

    quiet, loud = spread({"scale": "none"}, unit="agent")
    assert loud > 50 * quiet
    quiet, loud = spread({"scale": "none", "normalise": "batch"}, unit="agent")
    assert loud > 50 * quiet
    for ours in (
        spread({"scale": "none", "normalise": "role"}, unit="agent"),
        spread({"scale": "group"}, unit="agent"),
    ):
        assert ours[0] == pytest.approx(ours[1], rel=0.05)
        assert ours[0] == pytest.approx(48**0.5, rel=0.1)


def test_a_void_turn_takes_its_episode_out_of_the_loss_and_leaves_its_reward() -> None:
    """SimpleTIR: the trajectory is masked, and counts for its group."""
    told = [Told([Said(), Said(void=True)], 0.0), Told(turns(None), 1.0), Told(turns(None), 1.0)]
    config = config_of(3, void="turn", advantage=PLAIN)
    found, batch = advantages(config, told)
    assert batch["loss_mask"].any(1).tolist() == [False, True, True]
    assert by_turn(found, batch, 1) == pytest.approx([1 / 3])
    assert not batch["rewards"].isnan().any()


@pytest.mark.parametrize("void", ["none", "turn"])
def test_the_explosion_of_a_void_turn_is_filtered(void: str) -> None:
    """SimpleTIR: unlikely tokens of a void turn, of a failed episode, have ratios that nothing
    clips; without the filter their gradient is the whole batch's. Planted: p rose e^8-fold."""
    told = [
        Told([Said(), Said(void=True)], 0.0),
        *[Told(turns(None), float(n % 2)) for n in range(7)],
    ]
    config = config_of(8, void=void)
    advantages_BT, batch = advantages(config, told)
    batch["advantages"] = advantages_BT
    batch["old_logps"] = torch.full_like(advantages_BT, -1.0)
    batch["old_logps"][0, batch["turn"][0] == 2] = -9.0
    logps = torch.full_like(advantages_BT, -1.0, requires_grad=True)
    loss = objective.policy_loss(
        logps, torch.zeros_like(logps), batch, config.method.loss,
        objective.count(batch), max_length=9,
    ).loss  # fmt: skip
    loss.backward()
    assert logps.grad is not None
    if void == "none":
        assert logps.grad[0].norm() > 100 * logps.grad[1:].norm()
    else:
        assert not logps.grad[0].any()
        assert 0 < logps.grad.norm() < 1


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["method.turn_credit.unit=turn"], "method.episodes.environment"),
        (["method.episodes.environment=python", "method.turn_credit.unit=agent",
          "method.advantage.estimator=symmetric"], "chances of winning"),
        (["method.episodes.environment=python", "method.turn_credit.unit=turn",
          "method.turn_credit.turn_weight=0"], "nothing to learn"),
        (["method.episodes.environment=python", "method.turn_credit.discount=0.5"], "unit"),
        (["method.episodes.environment=python", "method.turn_credit.unit=turn",
          "method.turn_credit.values=turns"], "method.advantage.estimator"),
        (["method.episodes.environment=python", "method.filter.void=text"], "for episodes"),
        (["method.filter.void=turn"], "for episodes"),
        (["method.advantage.normalise=role"], "method.episodes.environment"),
    ],
)  # fmt: skip
def test_what_does_not_fit_says_so(repository: Path, given: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        configs.load(repository / "configs" / "grpo.toml", ["data=x.jsonl", "model=m", *given])


# -- several processes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "credit", [{"unit": "agent"}, {"unit": "turn", "episode_weight": 0.5}], ids=["agent", "turn"]
)
def test_groups_over_two_processes_have_the_advantages_of_one(credit: dict[str, Any]) -> None:
    """Rows of a group lie on both, with other numbers of turns, agents and tokens."""
    told = [
        Told([Said("a", 1 + n % 3, 0.25 * n), *[Said("b#1"), Said("b#2")] * (n // 3)], float(n % 2))
        for n in range(8)
    ]
    config = config_of(8, turn_credit=credit, advantage={"scale": "group"})
    whole, batch = advantages(config, told)
    barrier, held = threading.Barrier(2, timeout=30), [torch.empty(0)] * 2

    def gather(index: int, rows: torch.Tensor) -> torch.Tensor:
        held[index] = rows
        barrier.wait()
        if rows.dim() > 1:
            width = max(part.shape[1] for part in held)
            padded = [torch.nn.functional.pad(p, (0, width - p.shape[1])) for p in held]
        else:
            padded = list(held)
        barrier.wait()
        return torch.cat(padded)

    def one(index: int) -> torch.Tensor:
        mine = {name: column[4 * index : 4 * index + 4] for name, column in batch.items()}
        across = batches.Across(partial(gather, index), index)
        return batches.group_advantages(
            mine, config.method.advantage, 8, across, hooks=hooks_of(config)
        )

    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(one, range(2)))
    assert whole.abs().sum() > 0
    torch.testing.assert_close(torch.cat(parts), whole)


def test_an_environment_in_a_file_may_have_settings_of_its_own() -> None:
    """A dataclass with annotations as texts looks its module up."""
    kind = environment_of(f"{Path(__file__).parent.parent / 'relay.py'}:Relay")
    assert settings_of(kind, {"rounds": 3}).rounds == 3


def test_a_group_is_compared_by_what_its_turns_earned_too() -> None:
    """Without units and without a critic: the end's reward, and those of the first speaker."""
    config = config_of(4)
    said = [
        Told(turns(0.5, 0.25), 1.0),
        Told(turns(None), 0.0),
        Told(turns(0.5), None),
        Told([Said("a", reward=1.0), Said("b", reward=8.0)], 0.0),
    ]
    rollouts = [rollout_of(one, 0, n) for n, one in enumerate(said)]
    scored = [Scored(row, one.reward) for row, one in zip(rollouts, said, strict=True)]
    batch = batches.pad(scored, pad_id=0, policy_step=0, device=torch.device("cpu"))
    rewards = Acting(config).mark(batch, scored, Collected([tuple(rollouts)], []))["rewards"]
    assert rewards[:2].tolist() == [1.75, 0.0]
    assert rewards[2].isnan()
    assert rewards[3] == 1.0
