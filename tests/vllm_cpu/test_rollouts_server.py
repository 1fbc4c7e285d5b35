"""Rollouts by a vLLM server, on its CPU build, held against transformers."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.engines import vllm_server as module
from assay.trainer.engines.engine import Sampler, StoppedError
from assay.trainer.engines.types import Draw, Request, Response, Sampling
from assay.trainer.engines.vllm_server import VllmServerEngine
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.settings.sections import VllmConfig
from rollouts_support import direct_logps, ignore, make_requests
from vllm_rollouts_support import ROUNDING, WAYS, World, drain, long_requests, same
from vllm_support import PYTHON, START_S, policy_server, tiny_policy, vllm_server

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(
        not PYTHON, reason="no vllm here, and ASSAY_VLLM_PYTHON is not set: see `make test-vllm`"
    ),
    pytest.mark.timeout(2 * START_S),
    pytest.mark.filterwarnings("ignore"),
]


class Setting:
    """A server that began with weights of its own, a policy, and how to make engines of it."""

    def __init__(self, url: str, pid: int, folder: Path, **settings: Any) -> None:
        self.url, self.pid = url, pid
        self._given = {"mode": "server", "server_url": url, "folder": str(folder), **settings}
        self.world = World(tiny_policy(tied=True, seed=1))

    def engine(self, world: World | None = None, **settings: Any) -> VllmServerEngine:
        given = VllmConfig(**self._given, **settings)
        return VllmServerEngine((world or self.world).host(), given)

    def running(self) -> int:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        found = re.findall(
            r"^vllm:num_requests_(?:running|waiting)\{.*\} (\S+)$", text, re.MULTILINE
        )
        assert found
        return int(sum(map(float, found)))


def start(base: Path, *arguments: str, own_draws: bool, **settings: Any) -> Iterator[Setting]:
    tiny_policy(tied=True, seed=9).save_pretrained(base / "model")
    with policy_server(base / "model", base / "log.txt", *arguments, own_draws=own_draws) as (
        url,
        pid,
    ):
        yield Setting(url, pid, base / "weights", **settings)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    yield from start(tmp_path_factory.mktemp("run"), own_draws=True)


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    yield from start(tmp_path_factory.mktemp("engine"), own_draws=False, draws="engine")


@pytest.mark.parametrize("way", WAYS)
def test_tokens_are_those_of_hf_before_and_after_the_weights_moved(
    served: Setting, way: str
) -> None:
    world, engine = served.world, served.engine()
    requests = make_requests()
    for _ in range(2):
        world.move(0.02)
        order: list[int] = []
        found = Sampler(engine, WAYS[way]).generate(
            requests, lambda place, _, order=order: order.append(place)
        )
        same(found, world.hf(requests, WAYS[way]))
        assert sorted(order) == list(range(len(requests)))
    assert not list(Path(engine._settings.folder).iterdir()), "weights are not left lying about"
    engine.close()
    engine.close()


def test_windows_and_dialogues_go_on(served: Setting) -> None:
    world, engine = served.world, served.engine()
    requests, sampling = make_requests(), WAYS["filters"]
    sampler, whole = Sampler(engine, sampling), world.hf(requests, sampling)
    done: dict[int, Response] = {}

    def follow(id_: tuple[int, ...], response: Response) -> Any:
        place = id_[0]
        if response.finished:
            done[place] = response
        else:
            yield id_, Request(requests[place].draw, requests[place].index, response, window=4)

    first = [((n,), Request(r.draw, r.index, None, window=4)) for n, r in enumerate(requests)]
    sampler.serve(first, follow)
    same([done[n] for n in range(len(requests))], whole)
    engine.close()


def test_what_is_aborted_in_mid_answer_goes_on_later(served: Setting) -> None:
    world, engine = served.world, served.engine()
    requests = [
        Request(Draw(n, r.draw.problem, r.draw.prompt_ids), 0)
        for n, r in enumerate(long_requests())
    ]
    sampling = Sampling(180, temperature=2.0)
    whole = world.hf(requests, sampling)
    longest = max(range(len(whole)), key=lambda n: len(whole[n].ids))
    engine.update_weights()
    for n, request in enumerate(requests):
        engine.submit((n,), request, sampling)
    found: dict[Any, Response] = {}
    row = engine._open[(longest,)]
    while len(row.ids) < 3:
        told = engine._told.get(timeout=60)
        ended: list[Any] = []
        if told is not None:
            engine._hear(told, ended)
        for one, over in ended:
            engine._streams.pop(one.id)
            engine._end([(one, over)], lambda id_, r: found.update({id_: r}))
    partial = engine.abort()
    assert 3 <= len(partial[(longest,)].ids) < len(whole[longest].ids)
    for (n,), response in partial.items():
        assert response.ids == whole[n].ids[: len(response.ids)]
        assert response.logprobs is not None
        assert len(response.logprobs) == len(response.ids)
    end = time.monotonic() + 60
    while served.running() and time.monotonic() < end:
        time.sleep(0.05)
    assert served.running() == 0, "the server noticed that nobody listens"
    for (n,), response in partial.items():
        begun = response if response.ids else None
        engine.submit((n,), Request(requests[n].draw, 0, begun), sampling)
    found |= drain(engine)
    same([found[(n,)] for n in range(len(requests))], whole)
    engine.close()


def test_two_engines_of_one_policy_share_the_server(served: Setting) -> None:
    world, training = served.world, served.engine()
    evaluation = served.engine()
    assert evaluation._server is training._server
    requests, greedy = make_requests(), Sampling(10, temperature=0.0)
    training.update_weights()
    for n, request in enumerate(requests):
        training.submit((n,), request, Sampling(20))
        evaluation.submit((n,), request, greedy)
    told, found = drain(evaluation), drain(training)
    same([found[(n,)] for n in range(len(requests))], world.hf(requests, Sampling(20)))
    same([told[(n,)] for n in range(len(requests))], world.hf(requests, greedy))
    training.close()
    same(Sampler(evaluation, greedy).generate(requests, ignore), world.hf(requests, greedy))
    evaluation.close()


def test_acts_come_between_and_stop_ends_it(served: Setting) -> None:
    engine = served.engine()
    engine.update_weights()
    engine.submit((0,), long_requests()[0], Sampling(180))
    done: list[int] = []
    engine.between(lambda: done.append(1))
    engine.poll(lambda *_: done.append(-1))
    assert done == [1]
    engine.stop()
    with pytest.raises(StoppedError):
        engine.poll(lambda *_: None)
    assert list(engine.abort()) == [(0,)]
    engine.close()


def test_under_new_weights_open_requests_go_on(
    served: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = served.world
    monkeypatch.setattr(world, "ends", frozenset())
    engine = served.engine()
    requests, sampling = long_requests(8), Sampling(180, temperature=2.0)
    engine.update_weights()
    for n, request in enumerate(requests):
        engine.submit((n,), request, sampling)
    while engine._told.empty():
        time.sleep(0.01)
    old = tiny_policy(tied=True, seed=1)
    old.load_state_dict(world.model.state_dict())
    world.move()
    engine.update_weights()
    found = drain(engine)
    crossed = 0
    for n, request in enumerate(requests):
        ids, told = found[(n,)].ids, found[(n,)].logprobs
        assert told is not None
        count = range(len(ids))
        was = direct_logps(old, request, ids, temperature=2.0)[count, ids].tolist()
        now = direct_logps(world.model, request, ids, temperature=2.0)[count, ids].tolist()
        of_old = [abs(a - b) < ROUNDING for a, b in zip(told, was, strict=True)]
        of_new = [abs(a - b) < ROUNDING for a, b in zip(told, now, strict=True)]
        splits = [k for k in range(len(ids) + 1) if all(of_old[:k]) and all(of_new[k:])]
        assert splits, "tokens of old weights, then of new ones, and none of both"
        crossed += 0 < splits[0] < len(ids)
    print(f"\n{crossed} of {len(requests)} responses began under old weights and ended under new")
    assert crossed
    same(Sampler(engine, sampling).generate(requests, ignore), world.hf(requests, sampling))
    engine.close()


def test_a_refused_update_ends_the_run(served: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = served.engine()
    monkeypatch.setattr(module, "write", lambda _tensors, _place: None)
    for _ in range(2):
        with pytest.raises(TrainingStoppedError, match="refused /collective_rpc"):
            engine.update_weights()
    engine.close()
    monkeypatch.undo()
    lost = served.engine()
    monkeypatch.setattr(
        module.Path, "mkdir", lambda *_, **__: (_ for _ in ()).throw(PermissionError(13, "denied"))
    )
    with pytest.raises(TrainingStoppedError, match="denied"):
        lost.update_weights()
    lost.close()
    monkeypatch.undo()
    fine = served.engine()
    requests = make_requests()
    same(
        Sampler(fine, Sampling(9)).generate(requests, ignore),
        served.world.hf(requests, Sampling(9)),
    )
    fine.close()


def test_vllm_s_own_draws_depend_on_nothing_but_the_seed(seeded: Setting) -> None:
    world, engine = seeded.world, seeded.engine()
    requests = make_requests(draws=8, samples=4)
    sampler = Sampler(engine, Sampling(20, temperature=0.8))
    together = sampler.generate(requests, ignore)
    same([sampler.generate([request], ignore)[0] for request in requests[:6]], together[:6])
    for request, response in zip(requests, together, strict=True):
        told = direct_logps(world.model, request, response.ids, temperature=0.8)
        wanted = told[range(len(response.ids)), response.ids].tolist()
        assert response.logprobs == pytest.approx(wanted, abs=ROUNDING)
    [filtered, *_] = Sampler(engine, Sampling(9, top_p=0.9)).generate(requests, ignore)
    assert filtered.logprobs is None
    engine.close()


def test_weights_of_another_run_are_noticed(seeded: Setting) -> None:
    mine, other = seeded.engine(), seeded.engine(World(tiny_policy(tied=True, seed=4)))
    mine.update_weights()
    other.update_weights()
    mine.submit((0,), make_requests()[0], Sampling(9))
    with pytest.raises(TrainingStoppedError, match="did not send: is another run using it"):
        drain(mine)
    assert list(mine.abort()) == [(0,)]
    mine.close()
    other.close()


def test_a_server_that_was_started_otherwise_is_refused(seeded: Setting, tmp_path: Path) -> None:
    engine = VllmServerEngine(
        seeded.world.host(shared={}),
        VllmConfig(mode="server", server_url=seeded.url, folder=str(tmp_path)),
    )
    with pytest.raises(
        ConfigError, match=r"returns processed_logprobs, .*--logprobs-mode processed_"
    ):
        engine.update_weights()
    engine.close()
    engine = VllmServerEngine(
        seeded.world.host(shared={}),
        VllmConfig(mode="server", server_url=seeded.url, draws="engine", transfer="nccl"),
    )
    with pytest.raises(ConfigError, match="--weight-transfer-config"):
        engine.update_weights()
    engine.close()


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[Setting]:
    yield from start(tmp_path, own_draws=False, draws="engine")


def test_a_killed_server_ends_the_run_and_leaves_what_was_drawn(doomed: Setting) -> None:
    engine = doomed.engine()
    engine.update_weights()
    requests = long_requests(8)
    for n, request in enumerate(requests):
        engine.submit((n,), request, Sampling(180, temperature=2.0))
    os.killpg(doomed.pid, signal.SIGKILL)
    with pytest.raises(TrainingStoppedError, match="is the vLLM server running"):
        drain(engine)
    assert engine.abort()
    doomed.world.move()
    with pytest.raises(TrainingStoppedError, match="is the vLLM server running"):
        engine.update_weights()
    engine.close()


def test_a_plain_server_is_refused(tmp_path: Path) -> None:
    """As `vllm serve` starts it: raw log-probabilities, and no routes for training."""
    model = tiny_policy(tied=True)
    model.save_pretrained(tmp_path / "model")
    world = World(model)
    for environment, error, said in (
        ({}, TrainingStoppedError, "start it with --enable-scale-out and VLLM_SERVER_DEV_MODE=1"),
        ({"VLLM_SERVER_DEV_MODE": "1"}, ConfigError, "returns raw_logprobs"),
    ):
        with vllm_server(
            tmp_path / "model",
            tmp_path / "log.txt",
            "--skip-tokenizer-init",
            environment=environment,
        ) as (url, _):
            settings = VllmConfig(
                mode="server",
                server_url=url.removesuffix("/v1"),
                folder=str(tmp_path),
                draws="engine",
            )
            engine = VllmServerEngine(world.host(shared={}), settings)
            with pytest.raises(error, match=said):
                engine.update_weights()
            engine.close()
