"""Rollouts by vLLM's loop in this process, on its CPU build, held against transformers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.kit.errors import ConfigError
from assay.trainer.engines import vllm, vllm_worker
from assay.trainer.engines.engine import Id, Sampler, StoppedError
from assay.trainer.engines.hf import HfEngine
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.engines.vllm import VllmEngine
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import VllmConfig
from rollouts_support import direct_logps, ignore, make_requests
from vllm_rollouts_support import ROUNDING, WAYS, World, drain, long_requests, same
from vllm_support import HERE, START_S, tiny_policy

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not HERE, reason="vllm cannot be imported: see `make test-vllm`"),
    pytest.mark.timeout(START_S),
    pytest.mark.filterwarnings("ignore"),
]


def adapted() -> Any:
    from peft import LoraConfig, get_peft_model

    model: Any = get_peft_model(tiny_policy(), LoraConfig(r=4, target_modules="all-linear"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.3, generator=torch.Generator().manual_seed(1))
    return model


@pytest.fixture(scope="module", params=["untied", "tied", "lora"])
def pair(request: Any) -> Iterator[tuple[World, VllmEngine]]:
    model = adapted() if request.param == "lora" else tiny_policy(tied=request.param == "tied")
    yield from opened(World(model))


@pytest.fixture(scope="module")
def one() -> Iterator[tuple[World, VllmEngine]]:
    yield from opened(World(tiny_policy(seed=1)))


@pytest.fixture(scope="module")
def seeded() -> Iterator[tuple[World, VllmEngine]]:
    yield from opened(World(tiny_policy(seed=1)), draws="engine")


def opened(world: World, **settings: Any) -> Iterator[tuple[World, VllmEngine]]:
    engine = VllmEngine(world.host(), VllmConfig(**settings))
    yield world, engine
    engine.close()


def steps(engine: VllmEngine, count: int) -> None:
    for _ in range(count):
        engine._loop.step()


def test_a_cache_too_small_for_all_is_counted_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts = vllm.starts
    monkeypatch.setattr(  # vLLM keeps one block for itself
        vllm, "starts", lambda *a, **k: starts(*a, **k) | {"num_gpu_blocks_override": 8}
    )
    world = World(tiny_policy(seed=1))
    engine = VllmEngine(world.host(), VllmConfig(max_model_length=64))
    sampling, requests = Sampling(35), long_requests(6, size=25)
    assert engine.preemptions is None, "it has not started"
    same(Sampler(engine, sampling).generate(requests, ignore), world.hf(requests, sampling))
    assert engine.preemptions > 0
    engine.preemptions = 0
    Sampler(engine, sampling).generate(requests[:1], ignore)
    assert engine.preemptions == 0, "one alone has room"
    engine.close()


@pytest.mark.parametrize("way", WAYS)
def test_tokens_are_those_of_hf_before_and_after_the_weights_moved(
    pair: tuple[World, VllmEngine], way: str
) -> None:
    world, engine = pair
    requests = make_requests()
    before = [parameter.detach().clone() for parameter in world.model.parameters()]
    seen = []
    for _ in range(2):
        world.move(0.02)
        before = [parameter.detach().clone() for parameter in world.model.parameters()]
        found = Sampler(engine, WAYS[way]).generate(requests, ignore)
        same(found, world.hf(requests, WAYS[way]))
        seen.append([response.ids for response in found])
        for parameter, was in zip(world.model.parameters(), before, strict=True):
            assert torch.equal(parameter, was)
    assert len(set(seen[0])) > 2


def test_windows_go_on_where_they_ended(one: tuple[World, VllmEngine]) -> None:
    world, engine = one
    for sampling in (WAYS["filters"], WAYS["fire"]):
        requests = make_requests()
        sampler, whole = Sampler(engine, sampling), world.hf(requests, sampling)
        begun: list[Response | None] = [None] * len(requests)
        passes = 0
        while left := [n for n, now in enumerate(begun) if now is None or not now.finished]:
            asked = [
                Request(requests[n].draw, requests[n].index, begun[n], window=3 + n % 4)
                for n in left
            ]
            for n, response in zip(left, sampler.generate(asked, ignore), strict=True):
                begun[n] = response
            passes += 1
        assert passes > 3
        same([response for response in begun if response], whole)


def test_what_follows_is_asked_while_others_are_answered(one: tuple[World, VllmEngine]) -> None:
    world, engine = one
    requests = make_requests(draws=4, samples=2)
    spoken: dict[str, dict[Id, tuple[int, ...]]] = {}
    for name, maker in (("vllm", engine), ("hf", HfEngine(world.host()))):
        heard: dict[Id, tuple[int, ...]] = {}

        def follow(id_: Id, response: Response, heard: Any = heard) -> Any:
            heard[id_] = response.ids
            place, turn = id_
            if turn < 2:
                draw = requests[place].draw
                said = (*draw.prompt_ids, *response.ids, 5)
                next_ = Draw(draw.number, draw.problem, said)
                yield (place, turn + 1), Request(next_, requests[place].index, turn=turn + 1)

        first = [((n, 0), request) for n, request in enumerate(requests)]
        Sampler(maker, Sampling(12)).serve(first, follow)
        spoken[name] = heard
    assert spoken["vllm"] == spoken["hf"]
    assert len(spoken["hf"]) == 24
    assert list(spoken["vllm"]) != list(spoken["hf"]), "each goes its own way"


def test_responses_end_in_any_order_and_do_not_depend_on_their_batch(
    one: tuple[World, VllmEngine],
) -> None:
    _, engine = one
    sampler = Sampler(engine, Sampling(20))
    requests = make_requests()
    order: list[int] = []
    together = sampler.generate(requests, lambda place, _: order.append(place))
    assert order != sorted(order)
    lengths = [len(together[place].ids) for place in order]
    assert lengths == sorted(lengths)
    same([sampler.generate([request], ignore)[0] for request in requests], together)


def test_what_is_aborted_goes_on_later_and_the_rest_is_unharmed(
    one: tuple[World, VllmEngine],
) -> None:
    world, engine = one
    requests, sampling = make_requests(), Sampling(20)
    whole = world.hf(requests, sampling)
    engine.update_weights()
    for n, request in enumerate(requests):
        engine.submit((n,), request, sampling)
    steps(engine, 4)
    partial = engine.abort([(n,) for n in range(0, len(requests), 2)])
    assert any(len(response.ids) == 4 for response in partial.values())
    for (n,), response in partial.items():
        assert response.ids == whole[n].ids[: len(response.ids)]
        assert response.logprobs is not None
        assert len(response.logprobs) == len(response.ids)
        engine.submit((n,), Request(requests[n].draw, requests[n].index, response), sampling)
    found = drain(engine)
    same([found[(n,)] for n in range(len(requests))], whole)
    assert not engine._loop._drawing
    assert not engine._loop._engine.has_unfinished_requests()


def test_acts_come_between_passes_and_stop_ends_it(one: tuple[World, VllmEngine]) -> None:
    world, engine = one
    requests, sampling = make_requests(draws=1), Sampling(20)
    engine.update_weights()
    for n, request in enumerate(requests):
        engine.submit((n,), request, sampling)
    done: list[int] = []
    engine.between(lambda: done.append(len(engine._open)))
    engine.poll(lambda *_: done.append(-1))
    assert done == [3]
    engine.stop()
    with pytest.raises(StoppedError):
        engine.poll(lambda *_: None)
    assert len(engine.abort()) == 3
    same(Sampler(engine, sampling).generate(requests, ignore), world.hf(requests, sampling))


def test_two_engines_of_one_policy_share_a_loop(one: tuple[World, VllmEngine]) -> None:
    world, training = one
    evaluation = VllmEngine(world.host(), VllmConfig())
    assert evaluation._loop is training._loop
    requests, greedy = make_requests(), Sampling(10, temperature=0.0)
    expected = world.hf(requests, Sampling(20)), world.hf(requests, greedy)
    training.update_weights()
    for n, request in enumerate(requests):
        training.submit((n,), request, Sampling(20))
        evaluation.submit((n,), request, greedy)
    found = drain(training)
    ended = len(evaluation._ended)
    assert ended == len(requests), "a step draws for both"
    cut = evaluation.abort([(0,)])[(0,)]  # ended, but nobody heard of it
    assert cut.ids == expected[1][0].ids[:-1]
    evaluation.submit((0,), Request(requests[0].draw, requests[0].index, cut), greedy)
    told = drain(evaluation)
    same([found[(n,)] for n in range(len(requests))], expected[0])
    same([told[(n,)] for n in range(len(requests))], expected[1])
    evaluation.close()
    evaluation.close()
    same(Sampler(training, greedy).generate(requests, ignore), expected[1])


def test_under_new_weights_open_requests_go_on_and_nothing_old_is_read(
    one: tuple[World, VllmEngine],
) -> None:
    world, engine = one
    requests, sampling = long_requests(), Sampling(40)
    engine.update_weights()
    for n, request in enumerate(requests):
        engine.submit((n,), request, sampling)
    steps(engine, 5)
    drawn = {id_: list(row.ids) for id_, row in engine._open.items()}
    old = {
        (n,): direct_logps(world.model, request, drawn[(n,)])
        for n, request in enumerate(requests)
        if (n,) in drawn
    }
    world.move()
    engine.update_weights()
    found = drain(engine)
    for (n,), ids in drawn.items():
        response = found[(n,)]
        assert list(response.ids[: len(ids)]) == ids
        new = direct_logps(world.model, requests[n], response.ids)
        wanted = [float(old[(n,)][t, id_]) for t, id_ in enumerate(ids)]
        wanted += [float(new[t, id_]) for t, id_ in enumerate(response.ids)][len(ids) :]
        assert response.logprobs == pytest.approx(wanted, abs=ROUNDING)
    again = Sampler(engine, sampling).generate(requests, ignore)  # their prompts were cached
    same(again, world.hf(requests, sampling))


def test_requests_that_vllm_would_mistake_are_refused(one: tuple[World, VllmEngine]) -> None:
    _, engine = one
    [request] = make_requests(draws=1, samples=1)
    engine.update_weights()

    def of(ids: tuple[int, ...]) -> Request:
        return Request(Draw(0, request.draw.problem, ids), 0)

    with pytest.raises(ValueError, match="holds token 24, and the model has tokens 0 to 23"):
        engine.submit((0,), of((3, 24)), Sampling(4))
    with pytest.raises(ValueError, match="holds token -1"):
        engine.submit((0,), of((3, -1)), Sampling(4))
    with pytest.raises(ConfigError, match=r"raise rollout\.vllm\.max_model_length"):
        engine.submit((0,), of((3,) * 250), Sampling(7))
    engine.submit((0,), of((3,) * 250), Sampling(6))
    with pytest.raises(ValueError, match="is open"):
        engine.submit((0,), request, Sampling(4))
    assert list(engine.abort()) == [(0,)]


def test_vllm_s_own_draws_depend_on_nothing_but_the_seed(seeded: tuple[World, VllmEngine]) -> None:
    world, engine = seeded
    requests = make_requests(draws=8, samples=4)
    sampler = Sampler(engine, Sampling(20, temperature=0.8))
    together = sampler.generate(requests, ignore)
    same([sampler.generate([request], ignore)[0] for request in requests[:6]], together[:6])
    for request, response in zip(requests, together, strict=True):
        told = direct_logps(world.model, request, response.ids, temperature=0.8)
        wanted = told[range(len(response.ids)), response.ids].tolist()
        assert response.logprobs == pytest.approx(wanted, abs=ROUNDING)
    assert len({response.ids for response in together[:4]}) > 1
    [filtered, *_] = Sampler(engine, Sampling(9, top_p=0.9)).generate(requests, ignore)
    assert filtered.logprobs is None
    greedy = Sampling(20, temperature=0.0)
    same(Sampler(engine, greedy).generate(requests, ignore), world.hf(requests, greedy))
    for way in (WAYS["fire"], Sampling(4, temperature=2.5), Sampling(4, temperature=0.001)):
        with pytest.raises(ConfigError, match=r"rollout.vllm.draws = \"run\""):
            engine.submit((0,), requests[0], way)
    assert not engine.busy


def test_vllm_s_own_draws_are_new_ones_where_a_response_goes_on() -> None:
    """With the same seed again vLLM draws with the same noise: tokens would repeat themselves."""
    world = World(tiny_policy(initializer_range=0.02))  # all tokens are about as likely
    engine = VllmEngine(world.host(), VllmConfig(draws="engine"))
    flat = Sampler(engine, Sampling(2))
    requests = make_requests(draws=20, samples=10)
    window = [Request(r.draw, r.index, None, window=1) for r in requests]
    begun = flat.generate(window, ignore)
    on = [
        (Request(r.draw, r.index, response), response.ids[0])
        for r, response in zip(requests, begun, strict=True)
        if not response.finished
    ]
    second = flat.generate([request for request, _ in on], ignore)
    repeats = sum(r.ids[1] == was for r, (_, was) in zip(second, on, strict=True))
    assert repeats < len(on) * 0.12, "one in 24 by chance"
    engine.close()


@pytest.mark.parametrize("level", [1, 2])
def test_it_sleeps_when_nothing_is_asked_and_wakes_for_what_comes(level: Any) -> None:
    """The road there and back; that memory is given back on CUDA was not run."""
    world = World(tiny_policy(tied=True))
    engine = VllmEngine(world.host(), VllmConfig(sleep=level))
    requests, sampling = make_requests(), Sampling(12)
    sampler = Sampler(engine, sampling)
    same(sampler.generate(requests, ignore), world.hf(requests, sampling))
    vllm = engine._loop._engine
    assert not vllm.is_sleeping(), "on a CPU there is nothing to give back"
    engine._loop.starts["enable_sleep_mode"] = True
    for moved in (False, True):
        if moved:
            world.move(0.02)
        same(sampler.generate(requests, ignore), world.hf(requests, sampling))
        assert vllm.is_sleeping()
    engine.submit((0,), requests[0], sampling)
    assert not vllm.is_sleeping()
    engine.abort()
    engine.close()


def test_two_policies_have_a_vllm_each() -> None:
    worlds = [World(tiny_policy(seed=seed)) for seed in (2, 3)]
    engines = [VllmEngine(world.host(), VllmConfig()) for world in worlds]
    requests, sampling = make_requests(), Sampling(12)
    for _ in range(2):
        for world, engine in zip(worlds, engines, strict=True):
            found = Sampler(engine, sampling).generate(requests, ignore)
            same(found, world.hf(requests, sampling))
            world.move()
    for engine in engines:
        engine.close()


def test_starting_leaves_the_random_states_alone() -> None:
    import random

    import numpy as np

    def states() -> tuple[Any, ...]:
        numbers = np.random.get_state()
        return torch.get_rng_state().tolist(), random.getstate(), numbers[1].tolist(), numbers[2]

    world = World(tiny_policy())
    engine = VllmEngine(world.host(), VllmConfig())
    before = states()
    Sampler(engine, Sampling(4)).generate(make_requests(), ignore)
    assert states() == before
    engine.close()


def test_a_tied_head_that_stays_behind_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_worker, "refresh_tied_head", lambda _model: None)
    world = World(tiny_policy(tied=True))
    engine = VllmEngine(world.host(), VllmConfig())
    with pytest.raises(TrainingStoppedError, match="does not answer by the policy's weights"):
        engine.update_weights()
    with pytest.raises(TrainingStoppedError, match="does not answer by the policy's weights"):
        Sampler(engine, Sampling(4)).generate(make_requests(), ignore)
    engine.close()


def test_log_probabilities_of_another_distribution_are_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from assay.trainer.engines import vllm

    monkeypatch.setattr(vllm, "logprobs_mode", lambda own_draws: "raw_logprobs")
    for draws in ("run", "engine"):
        engine = VllmEngine(World(tiny_policy()).host(), VllmConfig(draws=draws))  # type: ignore[arg-type]
        with pytest.raises(TrainingStoppedError, match="does not answer by the policy's weights"):
            engine.update_weights()
        engine.close()


def test_logits_that_are_not_numbers_end_the_run() -> None:
    world = World(tiny_policy())
    with torch.no_grad():
        world.model.lm_head.weight.fill_(float("nan"))
    engine = VllmEngine(world.host(), VllmConfig())
    with pytest.raises(TrainingStoppedError, match="logits are not numbers"):
        engine.update_weights()
    engine.close()


def broken(error: Exception) -> Callable[[], Any]:
    def step() -> Any:
        raise error

    return step


def test_a_dead_engine_says_so_and_leaves_what_was_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for what, said in (
        (broken(RuntimeError("out of memory")), "out of memory"),
        (list, "no token"),
    ):
        world = World(tiny_policy())
        engine = VllmEngine(world.host(), VllmConfig())
        requests, sampling = make_requests(), Sampling(20)
        whole = world.hf(requests, sampling)
        engine.update_weights()
        for n, request in enumerate(requests):
            engine.submit((n,), request, sampling)
        steps(engine, 3)
        monkeypatch.setattr(engine._loop._engine, "step", what)
        for _ in range(2):
            with pytest.raises(TrainingStoppedError, match=f"vLLM ended early: .*{said}"):
                drain(engine)
        partial = engine.abort()
        assert partial
        for (n,), response in partial.items():
            assert response.ids == whole[n].ids[:3][: len(response.ids)]
        with pytest.raises(TrainingStoppedError, match="vLLM ended early"):
            engine.submit((0,), requests[0], sampling)
        engine.close()


def test_vllm_itself_dies_of_an_error_in_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The step after the one that failed would answer nothing, for ever."""
    world = World(tiny_policy())
    engine = VllmEngine(world.host(), VllmConfig())
    engine.update_weights()
    for n, request in enumerate(make_requests()):
        engine.submit((n,), request, Sampling(20))
    steps(engine, 2)
    worker = engine._loop._engine.model_executor.driver_worker.worker
    monkeypatch.setattr(worker.model_runner, "execute_model", lambda *_, **__: 1 / 0)
    with pytest.raises(TrainingStoppedError, match="ZeroDivisionError"):
        drain(engine)
    with pytest.raises(TrainingStoppedError, match="ZeroDivisionError"):
        drain(engine)
    assert all(response.ids for response in engine.abort().values())
    engine.close()


def test_a_prefix_cache_that_is_kept_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tiny_policy())
    engine = VllmEngine(world.host(), VllmConfig())
    engine.update_weights()
    monkeypatch.setattr(
        engine._loop._engine, "reset_prefix_cache", lambda reset_running_requests: False
    )
    world.move()
    with pytest.raises(TrainingStoppedError, match="computed with old weights"):
        engine.update_weights()
    engine.close()


def test_what_cannot_start_says_what_to_change() -> None:
    engine = VllmEngine(World(tiny_policy()).host(), VllmConfig(max_model_length=100_000))
    with pytest.raises(ConfigError, match=r"vLLM did not start: .* see rollout\.vllm"):
        engine.update_weights()
    engine.close()


@pytest.mark.parametrize("kind", ["ddp", "fsdp2"])
def test_each_of_two_processes_has_a_vllm_of_its_own(kind: str) -> None:
    script = Path(__file__).with_name("two_processes.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    done = subprocess.run(
        [*command, "--nproc-per-node", "2", str(script), kind],
        capture_output=True, text=True, timeout=START_S, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("fine") == 2
