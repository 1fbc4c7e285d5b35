"""The embedded engine says what the model says: in any company and batch, whatever is kept."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genrm_engine_support import Alone, Worker
from genrm_support import make_model

SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TOKENS = 300  # ordinary tokens of the tiny vocabulary lie from 4 up to here
SHARED = [tuple((7 * n + 5 * which) % (TOKENS - 4) + 4 for n in range(60)) for which in range(3)]


@st.composite
def sequences(draw: st.DrawFn) -> tuple[int, ...]:
    """Token ids, many of which begin alike."""
    begin = draw(st.sampled_from(SHARED))[: draw(st.integers(0, 60))]
    middle = draw(st.sampled_from(SHARED))[: draw(st.sampled_from([0, 17, 40]))]
    own = draw(st.lists(st.integers(4, TOKENS), min_size=1, max_size=30))
    return (*begin, *middle, *own)


limits = st.fixed_dictionaries(
    {
        "max_batch_tokens": st.sampled_from([150, 600, 16384]),
        "max_batch_items": st.sampled_from([1, 3, 128]),
        "prefix_cache_tokens": st.sampled_from([0, 100, 32768]),
    }
)
groups = st.lists(sequences(), min_size=1, max_size=10)


@pytest.fixture(scope="session")
def causal(tmp_path_factory: pytest.TempPathFactory) -> tuple[Worker, Alone]:
    folder = make_model(tmp_path_factory.mktemp("causal") / "model")
    return Worker(folder, "generative"), Alone(folder, "generative")


@pytest.fixture(scope="session")
def scalar(tmp_path_factory: pytest.TempPathFactory) -> tuple[Worker, Alone]:
    folder = make_model(tmp_path_factory.mktemp("scalar") / "model", "scalar")
    return Worker(folder, "scalar"), Alone(folder, "scalar")


@pytest.fixture(scope="session")
def step(tmp_path_factory: pytest.TempPathFactory) -> tuple[Worker, Alone]:
    folder = make_model(tmp_path_factory.mktemp("step") / "model", "step")
    return Worker(folder, "step"), Alone(folder, "step")


options = st.lists(
    st.lists(st.integers(4, TOKENS), min_size=1, max_size=3).map(tuple),
    min_size=2,
    max_size=4,
    unique=True,
)


@pytest.mark.slow
@SETTINGS
@given(groups, options, limits)
def test_the_probability_of_an_option_is_the_models(
    causal: tuple[Worker, Alone],
    group: list[tuple[int, ...]],
    options: list[tuple[int, ...]],
    limits: dict[str, int],
) -> None:
    worker, alone = causal
    worker.fresh(**limits)
    jobs = [{"kind": "choose", "ids": ids, "options": options} for ids in group]
    for answers in (worker.ask(jobs), worker.ask(jobs)):  # the second finds things kept
        for ids, answer in zip(group, answers, strict=True):
            for option, logprob in zip(options, answer["logprobs"], strict=True):
                want = alone.logprob(ids, option)
                assert math.exp(logprob) == pytest.approx(math.exp(want), abs=1e-5)
                assert logprob == pytest.approx(want, abs=1e-4)
                assert logprob <= 0


@pytest.mark.slow
@SETTINGS
@given(groups, limits, st.integers(1, 6))
def test_greedy_text_is_the_models_in_any_company(
    causal: tuple[Worker, Alone],
    group: list[tuple[int, ...]],
    limits: dict[str, int],
    count: int,
) -> None:
    worker, alone = causal
    worker.fresh(**limits)
    jobs = [_write(ids, max_tokens=count + n % 3) for n, ids in enumerate(group)]
    for n, (ids, answer) in enumerate(zip(group, worker.ask(jobs), strict=True)):
        want = alone.greedy(ids, count + n % 3)
        ended = want[-1] == alone.model.config.eos_token_id
        assert answer["text"] == worker.encoder.decode(want, ids)
        assert answer["finish"] == ("stop" if ended else "length")
        assert answer["completion"] == len(want)


@pytest.mark.slow
@SETTINGS
@given(groups, st.floats(0.3, 2), st.sampled_from([1.0, 0.7]), limits)
def test_a_seed_decides_the_text_whatever_else_is_written(
    causal: tuple[Worker, Alone],
    group: list[tuple[int, ...]],
    temperature: float,
    top_p: float,
    limits: dict[str, int],
) -> None:
    worker, _ = causal
    chance: dict[str, Any] = {"temperature": temperature, "top_p": top_p, "max_tokens": 6}
    worker.fresh()
    single = [worker.ask([_write(ids, seed=n, **chance)])[0] for n, ids in enumerate(group)]
    worker.fresh(**limits)
    together = worker.ask([_write(ids, seed=n, **chance) for n, ids in enumerate(group)])
    assert [answer["text"] for answer in single] == [answer["text"] for answer in together]


@SETTINGS
@given(groups, limits)
def test_a_dialogues_logit_is_the_models(
    scalar: tuple[Worker, Alone], group: list[tuple[int, ...]], limits: dict[str, int]
) -> None:
    worker, alone = scalar
    worker.fresh(**limits)
    # Padding's own token at the end: transformers reads the last token that is another.
    group = [*group, (*group[0], 0, 0)]
    for ids, answer in zip(
        group, worker.ask([{"kind": "rate", "ids": ids} for ids in group]), strict=True
    ):
        assert answer["logits"] == pytest.approx(alone.logits(ids).tolist(), abs=1e-5)


@SETTINGS
@given(groups, limits, st.data())
def test_the_chance_of_each_step_is_the_models(
    step: tuple[Worker, Alone],
    group: list[tuple[int, ...]],
    limits: dict[str, int],
    data: st.DataObject,
) -> None:
    worker, alone = step
    worker.fresh(**limits)
    places = [
        tuple(sorted(data.draw(st.sets(st.integers(0, len(ids) - 1), min_size=1, max_size=4))))
        for ids in group
    ]
    jobs = [
        {"kind": "rate-steps", "ids": ids, "positions": at}
        for ids, at in zip(group, places, strict=True)
    ]
    for ids, at, answer in zip(group, places, worker.ask(jobs), strict=True):
        want = alone.logits(ids).softmax(-1)[list(at), 1].tolist()
        assert answer["probabilities"] == pytest.approx(want, abs=1e-5)


@SETTINGS
@given(groups, limits)
def test_what_was_kept_stays_in_its_budget(
    causal: tuple[Worker, Alone], group: list[tuple[int, ...]], limits: dict[str, int]
) -> None:
    worker, _ = causal
    worker.fresh(**limits)
    answers = worker.ask([_write(ids, max_tokens=3) for ids in group])
    tree = worker.loop._tree
    assert tree is not None
    assert tree.tokens <= limits["prefix_cache_tokens"]
    for ids, answer in zip(group, answers, strict=True):
        assert 0 <= answer["cached"] < len(ids)


def _write(ids: tuple[int, ...], **settings: Any) -> dict[str, Any]:
    plain = {"max_tokens": 4, "temperature": 0.0, "top_p": 1.0, "seed": 0, "stop": ()}
    return {"kind": "write", "ids": ids, **plain, **settings}
