"""A row of several conversations says what each says as a row of its own: tokens, values, gradients
of a real model; and passes count conversations."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import critic_support as support
from assay.trainer.algos import packing
from assay.trainer.algos.packing import PASS, Packing, pack
from assay.trainer.critic import objective
from assay.trainer.critic.critic import Critic
from assay.trainer.critic.model import load_critic
from assay.trainer.critic.trunk import TrunkCritic
from assay.trainer.settings.objective import CriticConfig
from contexts_support import Row, apart, gathered, rows_of
from rollouts_support import random_model

ROWS = st.lists(
    st.tuples(st.integers(1, 5), st.lists(st.integers(1, 6), min_size=1, max_size=4)),
    min_size=1,
    max_size=4,
)
few = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(ROWS)
def test_a_sequence_holds_one_context_from_its_first_column(rows: list[Row]) -> None:
    batch = rows_of(rows)
    laid = packing.laid(batch)
    alone, _ = apart(batch, rows)
    expected = packing.laid(alone)
    assert laid.ids_SL.equal(expected.ids_SL)
    assert laid.mask_SL.equal(expected.mask_SL)
    assert laid.starts_S.equal(expected.starts_S)
    positions, tokens = packing.computed(batch)
    assert int(positions) == laid.ids_SL.numel()
    assert int(tokens) == int(laid.mask_SL.sum()) == int(packing.lengths(batch).sum())
    widths_B, counts_B = packing.shapes(batch)
    assert counts_B.tolist() == [len(parts) for _, parts in rows]
    assert widths_B.tolist() == [max(p + parts[0], *parts) for p, parts in rows]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 9)), min_size=1, max_size=6))
def test_rows_of_one_context_are_laid_as_without_the_column(pairs: list[tuple[int, int]]) -> None:
    batch = rows_of([(prompt, [size]) for prompt, size in pairs])
    laid = packing.laid(batch)
    plain = packing.laid({name: batch[name] for name in packing.INPUTS})
    assert laid.ids_SL.equal(plain.ids_SL)
    assert laid.mask_SL.equal(plain.mask_SL)
    assert laid.starts_S.equal(plain.starts_S)
    assert plain.places_BT is None
    keep = batch["completion_mask"].bool()
    told = packing.of_responses(laid.ids_SL, laid, batch, 0)
    assert told[keep].equal(packing.of_responses(plain.ids_SL, plain, batch, 0)[keep])
    assert told[keep].equal(batch["completion_ids"][keep])


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 5)), min_size=1, max_size=7),
    st.integers(0, 9),
    st.sampled_from([0, 50, 300, 1000]),
)
def test_passes_count_sequences_and_no_other_cuts_cost_less(
    shapes: list[tuple[int, int]], rows: int, positions: int
) -> None:
    sizes, counts = map(list, zip(*shapes, strict=True))
    passes = pack(sizes, counts, rows=rows, positions=positions)
    assert sorted(row for one in passes for row in one) == list(range(len(sizes)))

    def taken(one: list[int]) -> int:
        return sum(counts[row] for row in one) * max(sizes[row] for row in one)

    def allowed(one: list[int]) -> bool:
        if len(one) == 1:
            return True
        held = sum(counts[row] for row in one)
        return (not rows or held <= rows) and (not positions or taken(one) <= positions)

    def cost(found: list[list[int]]) -> tuple[int, int]:
        computed = sum(map(taken, found))
        if positions:
            return computed + len(found) * max(1, positions // PASS), 0
        return len(found), computed

    assert all(map(allowed, passes))
    order = [row for one in passes for row in one]
    others = []
    for marks in product((False, True), repeat=len(order) - 1):
        cuts = [0, *(n for n, mark in enumerate(marks, start=1) if mark), len(order)]
        found = [order[start:end] for start, end in pairwise(cuts)]
        if all(map(allowed, found)):
            others.append(cost(found))
    assert cost(passes) == min(others)


@pytest.fixture(scope="module")
def policy() -> Any:
    return random_model().eval()


def logps(model: Any, batch: Any) -> torch.Tensor:
    """Log-probabilities as the trainer takes them from a pass, 0 on padding."""
    laid = packing.laid(batch)
    logits = model(input_ids=laid.ids_SL, attention_mask=laid.mask_SL).logits
    told = logits[:, :-1].log_softmax(-1).gather(2, laid.ids_SL[:, 1:, None])[..., 0]
    found = packing.of_responses(told, laid, batch, -1)
    return found.masked_fill(batch["completion_mask"] == 0, 0.0)


@few
@given(ROWS, st.integers(0, 9))
def test_log_probabilities_and_gradients_are_those_of_rows_apart(
    policy: Any, rows: list[Row], seed: int
) -> None:
    batch = rows_of(rows, seed=seed)
    alone, places = apart(batch, rows)
    weights = torch.randn(batch["completion_ids"].shape)
    gradients = []
    for told in (
        logps(policy, batch),
        gathered(logps(policy, alone), places, batch["completion_ids"]),
    ):
        policy.zero_grad()
        (told * weights).sum().backward()
        kept = torch.cat([weight.grad.flatten().clone() for weight in policy.parameters()])
        gradients.append((told.detach(), kept))
    torch.testing.assert_close(gradients[0][0], gradients[1][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients[0][1], gradients[1][1], rtol=1e-3, atol=1e-4)
    firsts = (batch["context"][:, 1:] != batch["context"][:, :-1]) & (
        batch["completion_mask"][:, 1:] == 1
    )
    assert not gradients[0][0][:, 1:][firsts].any()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("policy")
    support.policy(where)
    return where


@pytest.fixture(scope="module")
def critics(folder: Path) -> Any:
    """A critic of its own and one on the policy's trunk, with heads that tell states apart."""
    config = CriticConfig(learning_rate=1e-3)
    model = load_critic(config, support.read_policy(folder), lambda _line: None)
    critic = Critic(model, config, support.accelerator())
    trunk_config = CriticConfig(sharing="trunk", learning_rate=1e-3)
    causal = support.read_fused(folder)
    trunk = TrunkCritic(causal, trunk_config, support.accelerator())
    for head in (objective_head(critic.model), trunk.head):
        torch.nn.init.normal_(head.weight, std=0.5)
    return {"separate": critic, "trunk": trunk}


def objective_head(model: Any) -> Any:
    from assay.trainer.critic.model import head_of

    return head_of(model)


@pytest.mark.parametrize("kind", ["separate", "trunk"])
@few
@given(rows=ROWS, seed=st.integers(0, 9), limit=st.integers(1, 6))
def test_values_are_those_of_rows_apart_however_they_are_packed(
    critics: Any, kind: str, rows: list[Row], seed: int, limit: int
) -> None:
    batch = rows_of(rows, seed=seed, vocabulary=300)
    alone, places = apart(batch, rows)
    critic = critics[kind]
    together = critic.values(batch, Packing(limit).passes(batch))
    expected = critic.values(alone, Packing(3).passes(alone))
    expected = gathered(expected, places, batch["completion_ids"])
    torch.testing.assert_close(together, expected, rtol=1e-4, atol=1e-5)


@few
@given(ROWS, st.integers(0, 9))
def test_a_critics_gradient_is_that_of_rows_apart(critics: Any, rows: list[Row], seed: int) -> None:
    critic = critics["separate"]
    batch = rows_of(rows, seed=seed, vocabulary=300)
    alone, places = apart(batch, rows)
    mask_BT = gathered(alone["completion_mask"], places, batch["completion_ids"])
    returns_BT = torch.randn(mask_BT.shape)
    returns_apart = torch.zeros(alone["completion_ids"].shape)
    for row, (number, where) in enumerate(places):
        returns_apart[row, : where.stop - where.start] = returns_BT[number, where]
    found = []
    for rows_, returns, mask in (
        (batch, returns_BT, mask_BT),
        (alone, returns_apart, alone["completion_mask"]),
    ):
        critic.model.zero_grad()
        sums = critic.backward(rows_, returns, returns, mask, tokens=mask.sum())
        weights = [w.grad.flatten().clone() for w in critic.model.parameters()]
        found.append((sums["loss"], torch.cat(weights)))
    critic.model.zero_grad()
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=1e-5)
    assert objective.model_inputs(batch)["input_ids"].shape[0] == sum(len(p) for _, p in rows)
