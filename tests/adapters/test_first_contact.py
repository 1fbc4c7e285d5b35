"""What each adapter does where no server is, and where nothing is judged: it never goes on so.

`tests/integration/test_client_contact.py` has what first contact finds and says; here each adapter
is called in its trainer's way, or by its trainer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adapters.conftest import RIGHT
from assay.clients import EmbeddedServices
from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.common.fault_ratio import (
    LEAST_CALLS,
    LEAST_ITEMS,
    TooManyFaultsError,
)
from assay.clients.trainers.common.faults import FaultError

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

BLANK = " "  # a reference that nobody can read

Call = Callable[[str], Any]
"""One call of an adapter for the row whose reference is given."""


def trl(target: str) -> Call:
    from assay.clients.trainers.trl import reward_function

    reward = reward_function(target, task="math", timeout_s=1.5)
    return lambda answer: asyncio.run(reward(["p"], [RIGHT], answer=[answer]))


def trl_called(target: str) -> Call:
    from assay.clients.trainers.trl import sync_reward_function

    reward = sync_reward_function(target, task="math", timeout_s=1.5)
    return lambda answer: reward(["p"], [RIGHT], answer=[answer])


def verl(target: str) -> Call:
    from assay.clients.trainers.verl import compute_score

    return lambda answer: compute_score("math", RIGHT, answer)


def verl_awaited(target: str) -> Call:
    from assay.clients.trainers.verl import compute_score_async

    return lambda answer: asyncio.run(compute_score_async("math", RIGHT, answer, on_fault="mask"))


def verl_batch(target: str) -> Call:
    from assay.clients.trainers.verl import compute_score_batch

    return lambda answer: compute_score_batch(["math"] * 2, [RIGHT] * 2, [answer] * 2, [None] * 2)


def openrlhf(target: str) -> Call:
    from assay.clients.trainers.openrlhf import reward_func

    return lambda answer: reward_func([f"2+2?{RIGHT}"], ["2+2?"], [answer])


def slime(target: str) -> Call:
    from assay.clients.trainers.slime import custom_rm

    def call(answer: str) -> Any:
        sample = SimpleNamespace(
            prompt="2+2?", response=RIGHT, response_length=1, label=answer, index=0,
            group_index=0, metadata=None, status=None,
        )  # fmt: skip
        return asyncio.run(custom_rm(SimpleNamespace(reward_key=None), sample))

    return call


def areal(target: str) -> Call:
    from assay.clients.trainers.areal import async_reward_fn

    return lambda answer: asyncio.run(async_reward_fn("2+2?", RIGHT, [1], [2], answer=answer))


def areal_pool(target: str) -> Call:
    from assay.clients.trainers.areal import reward_fn

    return lambda answer: reward_fn("2+2?", RIGHT, [1], [2], answer=answer)


def ms_swift(target: str) -> Call:
    pytest.importorskip("swift", reason="see `make test-adapters`")
    from swift.rewards import orms

    import assay.clients.trainers.ms_swift  # noqa: F401  # it registers itself

    return lambda answer: asyncio.run(orms["assay"]()([RIGHT], solution=[answer]))


def tinker(target: str) -> Call:
    pytest.importorskip("tinker_cookbook", reason="see `make test-adapters`")
    from functools import partial

    from tinker_cookbook.rl.problem_env import ProblemGroupBuilder
    from tinker_cookbook.rl.rollouts import do_group_rollout

    from adapters.test_tinker import RENDERER, Scripted
    from assay.clients.trainers.tinker import AssayEnv

    def call(answer: str) -> Any:
        env = partial(AssayEnv, RENDERER, "2 + 2?", {"answer": answer})
        return asyncio.run(do_group_rollout(ProblemGroupBuilder(env, 1), Scripted(RIGHT)))

    return call


def verifiers(target: str) -> Call:
    from assay.clients.trainers.verifiers import reward

    class Data(dict[str, Any]):
        prompt_text = "2 + 2?"

    trace = SimpleNamespace(last_reply=RIGHT, record_metrics=lambda _: None)
    return lambda answer: asyncio.run(reward(Data(answer=answer), trace))


def verifiers_rubric(target: str) -> Call:
    pytest.importorskip("verifiers.legacy", reason="see `make test-adapters`")
    from assay.clients.trainers.verifiers_rubric import AssayRubric

    rubric = AssayRubric()

    def call(answer: str) -> Any:
        said = [{"role": "assistant", "content": RIGHT}]
        return asyncio.run(
            rubric.score_group([{"prompt": "2+2?", "completion": said, "answer": answer}])
        )

    return call


ADAPTERS = [
    trl, trl_called, verl, verl_awaited, verl_batch, openrlhf, slime, areal, areal_pool, ms_swift,
    tinker, verifiers, verifiers_rubric,
]  # fmt: skip
EACH = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.__name__)


@pytest.fixture
def nowhere(environment: pytest.MonkeyPatch, nobody: str) -> str:
    environment.setenv("ASSAY_TARGET", nobody)
    environment.setenv("ASSAY_TIMEOUT_S", "1.5")
    return nobody


@EACH
def test_it_does_not_begin_where_nobody_judges(
    adapter: Callable[[str], Call], nowhere: str
) -> None:
    call = adapter(nowhere)
    for _ in range(2):
        with pytest.raises(FirstContactError, match=f"no reward server answers at {nowhere}"):
            call("4")


def passed(call: Call) -> int:
    """Calls without a judgement until the adapter ends the run."""
    for number in range(LEAST_ITEMS + LEAST_CALLS):
        try:
            call(BLANK)
        except FaultError:
            continue
        except TooManyFaultsError as error:
            assert "UNUSABLE_REFERENCE" in str(error)  # noqa: PT017  # any of many calls
            return number + 1
    pytest.fail("it goes on without judgements")


@EACH
def test_it_does_not_go_on_where_nothing_is_judged(
    adapter: Callable[[str], Call], server: EmbeddedServices, environment: pytest.MonkeyPatch
) -> None:
    call = adapter(server.address)
    call("4")
    assert passed(call) <= LEAST_ITEMS


@EACH
def test_one_turns_it_off(
    adapter: Callable[[str], Call], server: EmbeddedServices, environment: pytest.MonkeyPatch
) -> None:
    if adapter in (trl, trl_called):
        pytest.skip("an argument of its own; tests/e2e/test_plain_trl.py")
    environment.setenv("ASSAY_MAX_FAULT_RATIO", "1")
    with pytest.raises(pytest.fail.Exception, match="it goes on"):
        passed(adapter(server.address))


def test_inspect_ends_the_eval(tmp_path: Path, nobody: str, server: EmbeddedServices) -> None:
    pytest.importorskip("inspect_ai", reason="see `make test-adapters`")
    from adapters.test_inspect import evaluate
    from assay.clients.trainers.inspect_ai import assay

    log = evaluate(tmp_path, [RIGHT], assay(nobody, task="math", timeout_s=1.0))
    assert log.status == "error"
    assert log.error is not None
    assert "FirstContactError" in log.error.traceback
    many = LEAST_ITEMS + 6
    facts = [{"reference": BLANK}] * many
    log = evaluate(tmp_path, [RIGHT] * many, assay(server.address, task="math"), facts)
    assert log.status == "error"
    assert log.error is not None
    assert "TooManyFaultsError" in log.error.traceback
    lenient = assay(server.address, task="math", max_fault_ratio=1)
    log = evaluate(tmp_path, [RIGHT] * many, lenient, facts)
    assert log.status == "success"
    assert log.results is not None
    assert log.results.scores[0].unscored_samples == many


def test_nemo_gym_answers_503_whatever_the_policy(nobody: str, server: EmbeddedServices) -> None:
    pytest.importorskip("nemo_gym", reason="see `make test-adapters`")
    from adapters.test_nemo_gym import app_of, rollout

    with app_of(target=nobody, task="math", timeout_s=1.0) as app:
        answer = app.post("/verify", json=rollout(RIGHT, expected_answer="4"))
    assert answer.status_code == 503
    assert answer.json()["fault"]["reason"] == "FirstContactError"
    with app_of(target=server.address, task="math", on_fault="mask") as app:
        asked = rollout(RIGHT, expected_answer=BLANK)
        codes = [app.post("/verify", json=asked).status_code for _ in range(LEAST_ITEMS)]
    assert codes == [200] * (LEAST_ITEMS - 1) + [503]


def test_verls_manager(nobody: str, server: EmbeddedServices, tokenizer_folder: Path) -> None:
    pytest.importorskip("verl", reason="see `make test-adapters`")
    from adapters.test_verl import MANAGER, RewardLoopWorker, config_of, rows

    def asked(target: str, reference: str, count: int) -> Any:
        config = config_of(
            *MANAGER,
            f"actor_rollout_ref.model.path={tokenizer_folder}",
            f"+reward.reward_kwargs.target={target}",
            "+reward.reward_kwargs.timeout_s=1.5",
            "+reward.reward_kwargs.on_fault=mask",
        )
        data = rows([RIGHT] * count, reference)
        return asyncio.run(RewardLoopWorker(config).compute_score_batch(data))

    with pytest.raises(FirstContactError):
        asked(nobody, "4", 1)
    [one] = asked(server.address, BLANK, 1)
    assert math.isnan(one["reward_score"])
    with pytest.raises(TooManyFaultsError):
        asked(server.address, BLANK, LEAST_ITEMS)
