"""Several engines behind one model: who is asked, and what the death of one costs."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm.engines import load_engine
from assay.genrm.engines.base import (
    Answer,
    Choose,
    EngineError,
    EngineTally,
    NotBegunError,
    Prompt,
    PromptMessage,
    PromptPiece,
    Request,
)
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import SLACK, ReplicatedEngine, beginning
from assay.genrm.engines.transformers import TransformersEngine
from assay.kit.errors import ConfigError, StartupError
from genrm_memory import INFO, sound


def ask(question: str, response: str = "so") -> Choose:
    pieces = (PromptPiece(question), PromptPiece(response, trusted=False, cuttable=True))
    return Choose(Prompt((PromptMessage("user", pieces),)), ("A", "B"))


class Held:
    """A replica that answers when it is let."""

    def __init__(self, info=INFO, fails: StartupError | None = None) -> None:
        self.tally = EngineTally(restarts=1, batches=10, rows=20)
        self.info = info
        self.fails = fails
        self.asked: list[tuple[str, Request]] = []
        self.futures: list[asyncio.Future[Answer]] = []
        self.adapters: list[str] = []
        self.closed = 0

    async def start(self) -> None:
        if self.fails:
            raise self.fails

    async def ask(self, request: Request) -> Answer:
        return await self.ask_with("", request)

    async def ask_with(self, adapter: str, request: Request) -> Answer:
        self.asked.append((adapter, request))
        self.futures.append(asyncio.get_running_loop().create_future())
        return await self.futures[-1]

    async def load_adapter(self, key: str, folder: str) -> None:
        self.adapters.append(key)

    async def unload_adapter(self, key: str) -> None:
        self.adapters.remove(key)

    async def close(self) -> None:
        self.closed += 1

    def answer(self) -> None:
        for future, (_, request) in zip(self.futures, self.asked, strict=True):
            if not future.done():
                future.set_result(sound(request))


async def asked(engine: ReplicatedEngine, *requests: Request) -> list[asyncio.Task[Answer]]:
    tasks = [asyncio.create_task(engine.ask(request)) for request in requests]
    await asyncio.sleep(0)
    return tasks


async def end(engines: list[Held], tasks: list[asyncio.Task[Answer]]) -> None:
    for one in engines:
        one.answer()
    assert len(await asyncio.gather(*tasks)) == len(tasks)


@given(st.lists(st.integers(0, 5), max_size=60), st.integers(2, 4))
def test_no_engine_has_many_more_than_another(questions: list[int], count: int) -> None:
    async def run() -> None:
        engines = [Held() for _ in range(count)]
        made = ReplicatedEngine("m", engines)
        tasks = await asked(made, *(ask(f"question {q}", str(n)) for n, q in enumerate(questions)))
        loads = [len(one.asked) for one in engines]
        assert sum(loads) == len(questions)
        assert max(loads) - min(loads) <= SLACK
        await end(engines, tasks)
        assert made._loads == [0] * count

    asyncio.run(run())


@given(st.integers(2, 40), st.integers(2, 4))
def test_different_questions_go_by_turns(count: int, engines: int) -> None:
    async def run() -> None:
        held = [Held() for _ in range(engines)]
        made = ReplicatedEngine("m", held)
        tasks = await asked(made, *(ask(f"question {n}") for n in range(count)))
        loads = [len(one.asked) for one in held]
        assert max(loads) - min(loads) <= 1
        await end(held, tasks)

    asyncio.run(run())


async def test_the_candidates_of_one_question_stay_together_until_it_costs_others() -> None:
    engines = [Held(), Held()]
    made = ReplicatedEngine("m", engines)
    tasks = await asked(made, *(ask("one", str(n)) for n in range(SLACK)))
    assert [len(one.asked) for one in engines] == [SLACK, 0]
    tasks += await asked(made, ask("one", "last"))
    assert [len(one.asked) for one in engines] == [SLACK, 1]
    await end(engines, tasks)


async def test_an_adapter_has_a_home_of_its_own_and_is_everywhere() -> None:
    engines = [Held(), Held()]
    made = ReplicatedEngine("m", engines)
    await made.load_adapter("k", "folder")
    assert [one.adapters for one in engines] == [["k"], ["k"]]
    tasks = [asyncio.create_task(made.ask_with(key, ask("one"))) for key in ("", "k", "", "k")]
    await asyncio.sleep(0)
    assert [[key for key, _ in one.asked] for one in engines] == [["", ""], ["k", "k"]]
    await end(engines, tasks)
    await made.unload_adapter("k")
    assert [one.adapters for one in engines] == [[], []]


async def test_what_a_dead_engine_had_at_work_is_a_fault_and_the_rest_moves_on() -> None:
    engines = [Held(), Held()]
    made = ReplicatedEngine("m", engines)
    tasks = await asked(made, *(ask(f"question {n}") for n in range(4)))
    dead, other = engines
    dead.tally.ready = 0
    dead.futures[0].set_exception(EngineError("ENGINE_DIED", "died"))
    dead.futures[1].set_exception(NotBegunError("ENGINE_DIED", "not begun"))
    await asyncio.sleep(0.01)
    assert len(other.asked) == 3
    with pytest.raises(EngineError, match="died"):
        await tasks[0]
    tasks += await asked(made, *(ask(f"late {n}") for n in range(3)))
    assert len(other.asked) == 6
    assert len(dead.asked) == 2
    assert made.tally == EngineTally(2, 20, 40, ready=1)
    await end([other], tasks[1:])
    other.tally.ready = 0  # nobody answers: the least loaded one waits for its next process
    tasks = await asked(made, ask("last"))
    assert sum(len(one.asked) for one in engines) == 9
    await end(engines, tasks)


async def test_a_start_that_fails_ends_all_and_says_its_own_error() -> None:
    engines = [Held(), Held(fails=StartupError("model m: no memory"))]
    with pytest.raises(StartupError, match="no memory"):
        await ReplicatedEngine("m", engines).start()
    assert [one.closed for one in engines] == [1, 1]


async def test_replicas_of_different_weights_are_not_served() -> None:
    engines = [Held(), Held(replace(INFO, revision="other"))]
    with pytest.raises(StartupError, match=r"different weights \(other, r\)"):
        await ReplicatedEngine("m", engines).start()
    assert [one.closed for one in engines] == [1, 1]


def test_the_beginning_ends_before_the_candidate() -> None:
    assert list(beginning(ask("question", "one"))) == ["user", "question"]


def test_where_engines_run(tmp_path) -> None:
    config = EngineConfig("m", device=("cuda:0", "cpu"), replicas=2)
    assert config.places == ("cuda:0", "cuda:0", "cpu", "cpu")
    made = load_engine("m", config)
    assert isinstance(made, ReplicatedEngine)
    assert [one._device for one in made.engines] == list(config.places)
    assert isinstance(load_engine("m", EngineConfig("m", device="cuda:1")), TransformersEngine)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"device": "gpu"}, "'gpu' is none of auto, cpu, cuda, cuda:N"),
        ({"device": "cuda:x"}, "cuda:N"),
        ({"device": ()}, "empty list"),
        ({"replicas": 2, "engine": "vllm"}, "data_parallel_size"),
        ({"device": "cuda:1", "engine": "vllm"}, "CUDA_VISIBLE_DEVICES"),
        ({"replicas": 2, "engine": "openai"}, "its server decides"),
        ({"quantization": "bnb-nf4", "engine": "vllm"}, "quantization is for the transformers"),
        ({"head_route": "score"}, "head_route is for the openai engine"),
        ({"reload": True}, "'m' is none"),
        ({"reload": True, "engine": "openai"}, "reload is for a folder"),
    ],
)
def test_settings_that_do_not_go_together(settings, words) -> None:
    with pytest.raises(ConfigError, match=words):
        load_engine("judge", EngineConfig("m", **settings))


def test_settings_that_are_the_bases_and_what_is_no_adapter(tmp_path) -> None:
    adapter = EngineConfig(str(tmp_path), base="judge")
    with pytest.raises(ConfigError, match=r"holds no adapter_config\.json"):
        load_engine("safety", adapter)
    with pytest.raises(ConfigError, match="device is that of its base, model judge; set it there"):
        load_engine("safety", replace(adapter, device="cpu"))
    with pytest.raises(ConfigError, match="leave revision out"):
        load_engine("judge", EngineConfig(str(tmp_path), reload=True, revision="v1"))
