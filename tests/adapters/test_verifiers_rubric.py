"""The rubric in a real environment of verifiers 0.3, with a real client and a scripted policy."""

from __future__ import annotations

import math
from typing import Any

import pytest

from adapters.chat_support import scripted_policy
from adapters.conftest import RIGHT, Trouble
from assay.clients import EmbeddedServices
from assay.clients.trainers.common.faults import FaultError

pytest.importorskip("verifiers.legacy", reason="see `make test-adapters`")

import verifiers as vf
from datasets import Dataset

from assay.clients.trainers.verifiers_rubric import AssayRubric

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]


def environment_of(rubric: Any, answers: list[str]) -> Any:
    rows = {"question": ["2 + 2?"] * len(answers), "answer": answers}
    return vf.SingleTurnEnv(dataset=Dataset.from_dict(rows), rubric=rubric)


async def outputs_of(env: Any, url: str, monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[Any]:
    monkeypatch.setenv("POLICY_KEY", "none")
    client = vf.ClientConfig(api_base_url=url, api_key_var="POLICY_KEY")
    inputs = [dict(row) for row in env.get_dataset()]
    return list(await env.run_group(inputs, client, "scripted", {}, **more))


async def test_an_environment_has_the_servers_rewards(
    server: EmbeddedServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = environment_of(AssayRubric(target=server.address, task="math"), ["4", "5"])
    with scripted_policy(RIGHT) as url:
        outputs = await outputs_of(env, url, monkeypatch)
    assert [output["reward"] for output in outputs] == [1.0, 0.0]
    assert [output["error"] for output in outputs] == [None, None]


async def test_a_fault_is_an_error_and_in_no_mean(
    trouble: Trouble, server: EmbeddedServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubric = AssayRubric(target=trouble.target, task="math", timeout_s=1.5)
    env = environment_of(rubric, [trouble.reference, "4"])
    with scripted_policy(RIGHT) as url:
        faulted, other = await outputs_of(env, url, monkeypatch)
    assert math.isnan(faulted["reward"])
    assert trouble.reason in faulted["error_chain"] or trouble.reason in str(faulted["error"])
    if trouble.target == server.address:
        assert (other["reward"], other["error"]) == (1.0, None)


async def test_the_environments_retries_ask_again(
    dead_target: str, server: EmbeddedServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Recovering(AssayRubric):
        """A rubric whose server is back at the second time of asking."""

        async def score_group(self, states: Any) -> None:
            await super().score_group(states)
            self.settings = AssayRubric(target=server.address, task="math").settings

    env = environment_of(Recovering(target=dead_target, task="math", timeout_s=0.5), ["4"])
    with scripted_policy(RIGHT) as url:
        (output,) = await outputs_of(env, url, monkeypatch, max_retries=1)
    assert (output["reward"], output["error"]) == (1.0, None)


async def test_raise_ends_the_run(dead_target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rubric = AssayRubric(target=dead_target, task="math", timeout_s=0.5, on_fault="raise")
    with scripted_policy(RIGHT) as url, pytest.raises(FaultError, match="UNREACHABLE"):
        await outputs_of(environment_of(rubric, ["4"]), url, monkeypatch)


async def test_what_a_plain_function_in_a_rubric_comes_to(
    dead_target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why this is a rubric: verifiers makes 0 of a function's exception."""

    async def failing(completion: Any, answer: str) -> float:
        raise RuntimeError("no judgement")

    with scripted_policy(RIGHT) as url:
        env = environment_of(vf.Rubric(funcs=[failing]), ["4"])
        (output,) = await outputs_of(env, url, monkeypatch)
    assert (output["reward"], output["error"]) == (0.0, None)
