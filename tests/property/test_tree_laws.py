"""Trees of segments (SPO-tree, arXiv 2505.23564): values, advantages, who grows and who trains."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.clients import Fault, Judgement, Result
from assay.trainer.algos.advantages import group_advantages
from assay.trainer.algos.segments import segment_advantages, tree_advantages, tree_values
from assay.trainer.core.batch import Scored, pad
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.scripted import ScriptedEngine
from assay.trainer.engines.types import Request, Response, Sampling
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.tree.method import COLUMN, Tree, tree_tokens
from assay.trainer.methods.tree.sampler import TreeSampler, budget, leaves_below
from assay.trainer.methods.tree.settings import TreeConfig
from assay.trainer.rollouts.collector import Collector
from assay.trainer.rollouts.types import Collected, OneRank, Rollout
from assay.trainer.settings import config as configs
from assay.trainer.settings.sections import RolloutConfig
from rollouts_collecting_support import on_ranks, one_run, stream
from rollouts_slots_support import Numbers

LIMIT, END = 12, 1
BRANCHES = st.lists(st.integers(1, 4), min_size=1, max_size=3)


@st.composite
def trees(draw: st.DrawFn, faults: bool = False) -> tuple[list[float], list[int]]:
    branches = draw(BRANCHES)
    reward = st.floats(-1, 1)
    one = reward | st.just(math.nan) if faults else reward
    size = math.prod(branches)
    return draw(st.lists(one, min_size=size, max_size=size)), branches


@given(tree=trees())
def test_the_root_is_worth_the_mean_of_the_leaves(tree: Any) -> None:
    leaves, branches = tree
    values = tree_values(leaves, branches)
    assert [len(level) for level in values] == [
        math.prod(branches[:depth]) for depth in range(len(branches) + 1)
    ]
    assert values[0][0] == pytest.approx(sum(leaves) / len(leaves), abs=1e-9)


@given(tree=trees())
def test_advantages_on_the_way_to_a_leaf_add_up_and_those_of_siblings_cancel(tree: Any) -> None:
    leaves, branches = tree
    values = tree_values(leaves, branches)
    found = tree_advantages(values)
    for leaf, reward in enumerate(leaves):
        path = [level[leaf * len(level) // len(leaves)] for level in found]
        assert sum(path) == pytest.approx(reward - values[0][0], abs=1e-9)
        # a chain whose states are valued so has the same segments
        known = [level[leaf * len(level) // len(leaves)] for level in values[:-1]]
        chain = segment_advantages(len(path), list(range(len(path))), known, reward)
        assert path == pytest.approx(chain, abs=1e-12)
    for level, count in zip(found, branches, strict=True):
        for n in range(0, len(level), count):
            assert sum(level[n : n + count]) == pytest.approx(0, abs=1e-9)


@given(rewards=st.lists(st.floats(-1, 1), min_size=2, max_size=8), deep=st.integers(0, 2))
def test_without_branches_below_the_first_level_it_is_the_group_s_advantage(
    rewards: list[float], deep: int
) -> None:
    found = tree_advantages(tree_values(rewards, [len(rewards), *[1] * deep]))
    group = group_advantages(torch.tensor([rewards], dtype=torch.float64), scale="none")
    assert found[0] == pytest.approx(group[0].tolist(), abs=1e-9)
    assert all(one == 0 for level in found[1:] for one in level)


@given(tree=trees(faults=True))
def test_a_fault_is_in_no_mean(tree: Any) -> None:
    leaves, branches = tree
    values = tree_values(leaves, branches)
    for (above, below), count in zip(itertools.pairwise(values), branches, strict=True):
        for n, value in enumerate(above):
            known = [v for v in below[n * count : (n + 1) * count] if not math.isnan(v)]
            assert math.isnan(value) == (not known)
            assert not known or min(known) - 1e-9 <= value <= max(known) + 1e-9


# Growing, with a policy that writes at random.


def written(request: Request, at: int) -> int:
    """The token of a sample in a place: its own random number, as a seeded engine has it."""
    chance = random.Random(f"{request.draw.number}-{request.index}-{request.turn}-{at}")
    return END if chance.random() < 0.15 else chance.randrange(2, 40)


class Policy(Sampler):
    def __init__(self) -> None:
        super().__init__(ScriptedEngine(self._script, tokenizer=Numbers()), Sampling(LIMIT))

    @property
    def asked(self) -> list[Request]:
        return self.engine.asked  # type: ignore[attr-defined,no-any-return]

    def _script(self, request: Request) -> Response:
        ids = list(request.begun.ids if request.begun else ())
        while len(ids) < LIMIT and ids[-1:] != [END]:
            ids.append(written(request, len(ids)))
        logprobs = tuple(math.log(0.5 if token % 2 else 0.95) for token in ids)
        return Response(tuple(ids), "", logprobs, ids[-1] != END)


class Round:
    """Judges by the tokens; every seventh sample of a draw faults, if it is to."""

    def __init__(self, faults: bool) -> None:
        self._faults = faults
        self._seen: list[tuple[Request, Response]] = []

    def submit(self, request: Request, response: Response) -> None:
        self._seen.append((request, response))

    def results(self) -> list[Result]:
        return [
            Result(f"{one.draw.number}/{one.index}", self._judged(one, response))
            for one, response in self._seen
        ]

    def _judged(self, request: Request, response: Response) -> Judgement | Fault:
        if self._faults and request.index % 7 == request.draw.number % 7:
            return Fault("SANDBOX_LOST", "gone")
        right = sum(response.ids) % 2 == 0
        return Judgement(float(right), "correct" if right else "incorrect")


def grown(
    branches: Sequence[int], *, tokens: int = 4, faults: bool = False, ranks: Any = None
) -> tuple[Collected, list[Request]]:
    policy = Policy()
    sampler = TreeSampler(policy, TreeConfig(tuple(branches), tokens))
    collector = Collector(
        stream(), sampler, lambda: Round(faults),
        config=RolloutConfig(prompts_per_step=2, group_size=math.prod(branches)),
        ranks=ranks or OneRank(),
    )  # fmt: skip
    return collector.collect(0), policy.asked


@pytest.mark.parametrize("branches", [(3, 2, 2), (2, 1, 3), (4,)])
def test_leaves_share_what_their_tree_says_and_each_segment_is_drawn_once(
    branches: tuple[int, ...],
) -> None:
    collected, asked = grown(branches)
    whole = leaves_below(branches)
    counted = [0, 0, 0]
    for group in collected.groups:
        ids = [one.response.ids for one in group]
        assert [one.request.index for one in group] == list(range(whole[0]))
        for depth, size in enumerate(whole[1:], start=1):
            for leaf, own in enumerate(ids):
                first = ids[leaf - leaf % size]
                end = depth * 4
                assert own[:end] == first[:end], "leaves below a state begin alike"
                if len(first) <= end and first[-1] == END and depth < len(branches):
                    assert own == first, "who ended above repeats"
        spent = budget([len(one) for one in ids], TreeConfig(branches, 4))
        counted = [one + more for one, more in zip(counted, spent, strict=True)]
    assert counted[0] == len(asked)
    drawn = {(one.draw.number, one.index, len(one.begun.ids) if one.begun else 0) for one in asked}
    assert len(drawn) == len(asked)
    assert all(one.response.text for one in collected.held), "each is judged as a whole"


def test_the_first_leaf_and_a_tree_without_branches_are_what_they_were_without_a_tree() -> None:
    plain, _ = grown((4,), tokens=99)
    slim, _ = grown((4, 1, 1))
    assert repr(slim.groups) == repr(plain.groups)
    wide, _ = grown((2, 2))
    for group, other in zip(wide.groups, plain.groups, strict=True):
        assert group[0].response == other[0].response
        assert group[2].response == other[2].response


def test_several_processes_grow_the_trees_of_one() -> None:
    alone, _ = grown((2, 2, 2), faults=True)
    together = on_ranks(2, lambda rank: grown((2, 2, 2), faults=True, ranks=rank)[0])
    one_run(together, alone)


@pytest.mark.parametrize("faults", [False, True])
@pytest.mark.parametrize("mask_sure", [False, True])
def test_every_segment_is_in_the_loss_once_with_its_advantage(
    faults: bool, mask_sure: bool
) -> None:
    branches = (3, 2, 2)
    collected, _ = grown(branches, faults=faults)
    config = TreeConfig(branches, 4, mask_sure)
    settings = configs.build(
        {
            "method": {
                "advantage": {"estimator": "tree", "scale": "none"},
                "tree": {"branches": list(branches), "segment_tokens": 4, "mask_sure": mask_sure},
            },
            "rollout": {"group_size": 12},
        },
        origin="test",
    )
    items = [
        Scored(one, judgement.reward if judgement else None)
        for group in collected.groups
        for one in group
        for judgement in [one.result.judgement]
    ]
    batch = Tree(settings).mark(
        pad(items, pad_id=0, policy_step=0, device=torch.device("cpu")), items, collected
    )
    trained: dict[tuple[int, int, int], float] = {}

    def place(row: int, at: int) -> tuple[int, int, int]:
        """The tree, its segment's first leaf, and the token's place."""
        return row // 12, row % 12 - row % (4, 2, 1)[min(at // 4, 2)], at

    for row, item in enumerate(items):
        assert isinstance(item.rollout, Rollout)
        ids = item.rollout.response.ids
        for at in range(len(ids)):
            if not batch["loss_mask"][row, at]:
                continue
            assert item.reward is not None
            assert not mask_sure or ids[at] % 2, "only unsure tokens"
            assert place(row, at) not in trained, "a segment trains once"
            trained[place(row, at)] = float(batch[COLUMN][row, at])
    for n in range(0, len(items), 12):
        group = items[n : n + 12]
        rewards = [math.nan if one.reward is None else one.reward for one in group]
        found = tree_advantages(tree_values(rewards, branches))
        for leaf, item in enumerate(group):
            if item.reward is None:
                continue
            ids = item.rollout.response.ids
            for at in range(len(ids)):
                if mask_sure and not ids[at] % 2:
                    continue
                level = found[min(at // 4, 2)]
                expected = level[leaf * len(level) // 12]
                assert trained[place(n + leaf, at)] == pytest.approx(expected, abs=1e-6)
    assert len(tree_tokens(items[:12], config)) == 12


def test_a_sampler_without_log_probabilities_is_told_of() -> None:
    collected, _ = grown((2,))
    [group, _] = collected.groups
    items = [
        Scored(Rollout(one.request, Response((3,), "", None, False), one.result, 0), 1.0)
        for one in group
    ]
    with pytest.raises(TrainingStoppedError, match="gave no log-probabilities"):
        tree_tokens(items, TreeConfig((2,)))


def test_half_a_tree_is_refused() -> None:
    policy = Policy()
    draw = stream().take(1)[0]
    with pytest.raises(ValueError, match="no whole trees"):
        TreeSampler(policy, TreeConfig((2, 2))).generate([Request(draw, 0)], lambda *_: None)
