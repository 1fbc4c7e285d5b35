"""Credit of agents and turns: laws of the arithmetic, and of batches of hand-made episodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from algos_support import law
from assay.trainer.algos import episodes, turns
from assay.trainer.algos.advantages import group_advantages, rloo_advantages, success_scaled
from episodes_credit_support import Said, Told, advantages, config_of

REWARDS = st.floats(-2, 2, width=32)
AGENTS = st.sampled_from(["policy", "proposer", "solver#1", "solver#2"])
SAID = st.builds(Said, AGENTS, st.integers(1, 3), st.one_of(st.none(), REWARDS))
TOLD = st.builds(
    Told,
    st.lists(SAID, min_size=1, max_size=5),
    st.one_of(REWARDS, REWARDS, REWARDS, st.none()),
    st.dictionaries(AGENTS, st.one_of(st.none(), REWARDS), max_size=2),
)
GROUPS = st.integers(1, 3).flatmap(lambda n: st.lists(TOLD, min_size=4 * n, max_size=4 * n))
UNITS = st.sampled_from([("agent", "turn"), ("turn", "turn"), ("turn", "state")])


def credit(unit: tuple[str, str], **more: Any) -> dict[str, Any]:
    table: dict[str, Any] = {"unit": unit[0], **more}
    return table | ({"compare": unit[1]} if unit[0] == "turn" else {})


def found(told: Sequence[Told], unit: tuple[str, str], estimator: str, scale: str) -> list[Any]:
    """Advantages of each episode's tokens, without padding."""
    config = config_of(
        4,
        turn_credit=credit(unit),
        advantage={"estimator": estimator, "scale": scale},
    )
    told_BT, batch = advantages(config, told)
    return [
        row[keep.bool()].tolist()
        for row, keep in zip(told_BT, batch["completion_mask"], strict=True)
    ]


@law
@given(GROUPS, UNITS, st.sampled_from(["group", "rloo"]), st.sampled_from(["none", "group"]),
       st.permutations(range(4)))  # fmt: skip
def test_samples_of_a_group_may_come_in_any_order(
    told: list[Told], unit: tuple[str, str], estimator: str, scale: str, order: list[int]
) -> None:
    mixed = [n + place for n in range(0, len(told), 4) for place in order]
    before = found(told, unit, estimator, scale)
    after = found([told[n] for n in mixed], unit, estimator, scale)
    for place, origin in enumerate(mixed):
        assert after[place] == pytest.approx(before[origin], abs=1e-5)


@law
@given(GROUPS, UNITS, st.sampled_from(["group", "rloo"]), st.data())
def test_a_fault_is_as_if_the_sample_had_never_been(
    told: list[Told], unit: tuple[str, str], estimator: str, data: st.DataObject
) -> None:
    """What a faulted sample said, and would have earned, moves no other sample's advantages."""
    place = data.draw(st.integers(0, len(told) - 1))
    other = data.draw(TOLD)
    one, two = list(told), list(told)
    one[place] = Told(told[place].said, None, {})
    two[place] = Told(other.said, None, {})
    before, after = (found(given_, unit, estimator, "group") for given_ in (one, two))
    assert not any(before[place])
    for number in range(len(told)):
        if number != place:
            assert after[number] == pytest.approx(before[number], abs=1e-6)


@law
@given(GROUPS, UNITS, st.floats(-3, 3, width=32))
def test_a_shift_of_all_final_rewards_changes_nothing(
    told: list[Told], unit: tuple[str, str], shift: float
) -> None:
    """Where all agents earn the episode's reward; each then earns as much more."""
    plain = [Told(one.said, one.reward) for one in told]
    moved = [Told(one.said, None if one.reward is None else one.reward + shift) for one in plain]
    for before, after in zip(
        found(plain, unit, "group", "none"), found(moved, unit, "group", "none"), strict=True
    ):
        assert after == pytest.approx(before, abs=1e-4)


@law
@given(
    st.lists(st.tuples(st.integers(0, 3), st.one_of(REWARDS, st.just(float("nan")))),
             min_size=6, max_size=24),
    st.integers(1, 3),
    st.sampled_from([group_advantages, rloo_advantages]),
)  # fmt: skip
def test_advantages_of_one_key_sum_to_zero_and_are_the_estimators(
    units: list[tuple[int, float]], group_size: int, function: Any
) -> None:
    """Of any key in any group, by the estimator alone on the units of that key."""
    rows = len(units) // (2 * group_size) * group_size
    keys = torch.tensor([key for key, _ in units[: 2 * rows]]).view(rows, 2)
    values = torch.tensor([value for _, value in units[: 2 * rows]]).double().view(rows, 2)
    if not rows:
        return
    tasks = torch.zeros(rows // group_size, dtype=torch.long)
    got = episodes.unit_advantages(
        keys, values, partial(function, scale="none"), group_size=group_size, tasks_P=tasks
    )
    assert not got.isnan().any()
    assert not got[keys == 0].any()
    for first in range(0, rows, group_size):
        part, mine = keys[first : first + group_size], slice(first, first + group_size)
        for key in set(part.flatten().tolist()) - {0}:
            alone = function(values[mine][part == key].unsqueeze(0), scale="none")[0]
            torch.testing.assert_close(got[mine][part == key], alone)
            assert float(got[mine][part == key].sum()) == pytest.approx(0, abs=1e-9)


@law
@given(st.lists(st.tuples(st.integers(1, 3), REWARDS), min_size=1, max_size=8),
       st.floats(0.125, 1))  # fmt: skip
def test_returns_to_go_are_the_discounted_sums_of_each_agent(
    said: list[tuple[int, float]], discount: float
) -> None:
    agents = torch.tensor([[agent for agent, _ in said] + [0]])
    rewards = torch.tensor([[reward for _, reward in said] + [9.0]]).double()
    got = episodes.returns_to_go(rewards, agents, discount)[0].tolist()
    assert got.pop() == 0
    for place, (agent, _) in enumerate(said):
        later = [reward for other, reward in said[place:] if other == agent]
        total = sum(discount**n * reward for n, reward in enumerate(later))
        assert got[place] == pytest.approx(total, abs=1e-9)


@st.composite
def spoken(draw: st.DrawFn) -> Any:
    """Rows of one agent's turns with masked tokens between them, in the order of time."""
    rows = draw(
        st.lists(st.lists(st.integers(1, 3), min_size=1, max_size=4), min_size=1, max_size=3)
    )
    width = max(sum(sizes) + len(sizes) for sizes in rows)
    turn = torch.zeros(len(rows), width, dtype=torch.long)
    for number, sizes in enumerate(rows):
        at = 0
        for place, size in enumerate(sizes, start=1):
            turn[number, at : at + size] = place
            at += size + 1
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    numbers = torch.randn(2, len(rows), width, generator=generator, dtype=torch.float64)
    return turn, numbers[0], numbers[1]


@law
@given(spoken(), st.floats(0, 1), st.floats(0, 1), st.floats(0.5, 1))
def test_one_agents_gae_is_that_of_joined_turns(
    rows: Any, lam: float, critic: float, gamma: float
) -> None:
    turn, rewards, values = rows
    given_ = {"gamma": gamma, "lam_actor": lam, "lam_critic": critic}
    found_ = episodes.agent_gae(
        rewards, values, turn > 0, turn_BT=turn, agent_BT=(turn > 0).long(), **given_
    )
    expected = turns.turn_gae(rewards, values, turn > 0, independent=False, **given_)
    for one, other in zip(found_, expected, strict=True):
        torch.testing.assert_close(one, other)


@law
@given(spoken(), st.floats(0, 1), st.floats(0.5, 1))
def test_agents_do_not_reach_one_another(rows: Any, lam: float, discount: float) -> None:
    """Each agent's advantages are those of its turns alone; another's rewards change nothing."""
    turn, rewards, values = rows
    agent = torch.where(turn > 0, 1 + turn % 2, 0)
    for function, more in (
        (episodes.agent_gae, {}),
        (episodes.utterance_gae, {"discount": discount}),
    ):
        estimate: Any = partial(function, turn_BT=turn, agent_BT=agent, **more)
        whole = estimate(rewards, values, turn > 0, lam_actor=lam, lam_critic=1.0)
        spoilt = torch.where(agent == 1, rewards, 17.0)
        changed = estimate(spoilt, values, turn > 0, lam_actor=lam, lam_critic=1.0)
        mine = agent == 1
        for one, other in zip(whole, changed, strict=True):
            torch.testing.assert_close(one[mine], other[mine])
            assert not one[turn == 0].any()


@law
@given(spoken(), st.floats(0.5, 1))
def test_utterances_with_lambda_one_are_returns_less_values(rows: Any, discount: float) -> None:
    turn, rewards, values = rows
    agent, first = (turn > 0).long(), episodes.first_tokens(turn)
    told, targets = episodes.utterance_gae(
        rewards, values, turn > 0, turn_BT=turn, agent_BT=agent,
        discount=discount, lam_actor=1.0, lam_critic=1.0,
    )  # fmt: skip
    rewards_BU = episodes.by_unit(torch.where(turn > 0, rewards, 0.0), turn)
    returns = episodes.returns_to_go(rewards_BU, episodes.of_unit(agent, turn), discount)
    values_BU = episodes.by_unit(torch.where(first, values, 0.0), turn)
    torch.testing.assert_close(told, episodes.to_tokens(returns - values_BU, turn))
    torch.testing.assert_close(targets[first], episodes.to_tokens(returns, turn)[first])
    assert not targets[~first].any()


@law
@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=4),
       st.floats(0, 1), st.floats(0, 2))  # fmt: skip
def test_only_negative_advantages_shrink_and_none_changes_sign(
    rewards: list[list[float]], base: float, slope: float
) -> None:
    rewards_PG = torch.tensor(rewards)
    before = group_advantages(rewards_PG, scale="none")
    after = success_scaled(before, rewards_PG, base=base, slope=slope)
    assert after[before >= 0].equal(before[before >= 0])
    assert ((after <= 0) & (after >= before))[before < 0].all()
    factor = (base + slope * rewards_PG.double().mean(1)).clamp(max=1)
    torch.testing.assert_close(
        after, torch.where(before < 0, before.double() * factor[:, None], before).float()
    )
