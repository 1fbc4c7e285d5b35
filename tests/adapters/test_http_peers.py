"""The facade asked by the peers' own clients, and by schemathesis."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import sandbox_service
from assay.clients.execution import AsyncExecutionClient
from http_support import serving

pytestmark = pytest.mark.adapters

CHECK = {
    "type": "string_check",
    "name": "same",
    "operation": "eq",
    "input": "{{ sample.output_text }}",
    "reference": "{{ item.answer }}",
}
PYTHON = {"type": "python", "name": "code"}


async def test_openrlhfs_own_client() -> None:
    agent = pytest.importorskip("openrlhf.utils.agent")
    async with serving() as facade:
        url = f"http://{facade.address}/get_reward?verifier=exact"
        executor = agent.SingleTurnAgentExecutor(url)
        told = (["<s>6 * 7? 42</s>"], ["6 * 7? "], ["42"])
        (answer,) = await executor._fetch_rewards_via_http(*told)
        assert (answer["rewards"], answer["scores"]) == ([1.0], [1.0])
        faulty = f"http://{facade.address}/get_reward?verifier=obedient"
        executor = agent.SingleTurnAgentExecutor(faulty)
        with pytest.raises(RuntimeError, match="5 times"):
            await executor._fetch_rewards_via_http(["fault WORKER_DIED"], [], [])
        assert facade.obedient.asked.count("fault WORKER_DIED") == 5, "it asks again, and raises"


async def slimes_remote_rm(args: Any, sample: Any, max_retries: int = 10) -> Any:
    """What slime's `remote_rm` sends and takes (slime/rollout/rm_hub, commit 624b824a).

    Three fields as JSON in a POST to `--rm-url`; any status from 400 on is an exception; what comes
    back is read as JSON, which aiohttp does for the content type of JSON alone. Every exception is
    met by another attempt, and the last one leaves it. Its waits in between, of up to 30 s, are
    left out here.
    """
    aiohttp = pytest.importorskip("aiohttp", reason="see `make test-adapters`")
    told = {"prompt": sample.prompt, "response": sample.response, "label": sample.label}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as session:
        for attempt in range(max_retries):
            try:
                async with session.post(args.rm_url, json=told) as answer:
                    answer.raise_for_status()
                    return await answer.json()
            except aiohttp.ClientError:
                if attempt + 1 == max_retries:
                    raise
    raise AssertionError("nothing was asked")


def slimes_sample(response: str, label: Any = "42", prompt: Any = "6 * 7?") -> Any:
    return SimpleNamespace(prompt=prompt, response=response, label=label)


@pytest.fixture(params=["as slime asks", "slime's own"])
def ask(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function above, and slime's own where a checkout is on the path."""
    if request.param == "as slime asks":
        return slimes_remote_rm
    hub = pytest.importorskip("slime.rollout.rm_hub", reason="slime is not on PyPI")
    monkeypatch.setattr(hub, "_shared_session", None)  # it is of the event loop of another test
    return hub.remote_rm


async def test_slimes_own_client(ask: Any) -> None:
    chat = [{"role": "user", "content": "6 * 7?"}]
    async with serving() as facade:
        args = SimpleNamespace(rm_url=f"http://{facade.address}/slime?verifier=exact")
        samples = [
            slimes_sample("42"),
            slimes_sample("41"),
            slimes_sample("42", prompt=chat),
            slimes_sample("42", label=42),
            slimes_sample("x", label=["y", "x"]),
        ]
        rewards = await asyncio.gather(*(ask(args, sample) for sample in samples))
        assert rewards == [1.0, 0.0, 1.0, 1.0, 1.0]
        assert {type(reward) for reward in rewards} == {float}, "slime trains on what it is given"

        args.rm_url += "&as=dict"
        keyed = await ask(args, slimes_sample("42"))  # for `--reward-key reward`
        assert (keyed["reward"], keyed["verdict"]) == (1.0, "correct")


@pytest.mark.parametrize(
    ("verifier", "sample", "status", "attempts"),
    [
        ("obedient", slimes_sample("fault WORKER_DIED"), 500, 2),
        ("obedient", slimes_sample("fault QUEUE_FULL"), 429, 2),
        ("exact", slimes_sample("42", label=None), 400, 0),
        ("nobody", slimes_sample("42"), 404, 0),
    ],
)
async def test_slimes_own_client_gets_no_number_for_a_fault(
    ask: Any, verifier: str, sample: Any, status: int, attempts: int
) -> None:
    aiohttp = pytest.importorskip("aiohttp", reason="see `make test-adapters`")
    async with serving() as facade:
        for shape in ("number", "dict"):
            query = f"verifier={verifier}" + ("&as=dict" if shape == "dict" else "")
            args = SimpleNamespace(rm_url=f"http://{facade.address}/slime?{query}")
            with pytest.raises(aiohttp.ClientResponseError) as caught:
                await ask(args, sample, max_retries=2)
            assert caught.value.status == status
        faults = [asked for asked in facade.obedient.asked if asked.startswith("fault")]
        assert len(faults) == 2 * attempts, "each attempt is judged anew"


async def test_the_sdks_graders() -> None:
    openai = pytest.importorskip("openai")
    with sandbox_service.running() as (sandbox, _):
        client = AsyncExecutionClient(sandbox)
        async with client, serving(sandbox=client) as facade:
            sdk = openai.OpenAI(
                base_url=f"http://{facade.address}/v1", api_key="any", max_retries=0
            )

            async def run(grader: dict[str, Any], sample: str = "42") -> Any:
                return await asyncio.to_thread(
                    sdk.fine_tuning.alpha.graders.run,
                    grader=grader, model_sample=sample, item={"answer": "42"},
                )  # fmt: skip

            same = await run(CHECK)
            assert (same.reward, same.metadata.errors.other_error) == (1.0, False)
            source = "def grade(sample, item):\n    return len(sample['output_text']) / 4\n"
            multi = {
                "type": "multi",
                "name": "both",
                "graders": {"same": CHECK, "code": {**PYTHON, "source": source}},
                "calculate_output": "(same + code) / 2",
            }
            both = await run(multi)
            assert (both.reward, both.sub_rewards) == (0.75, {"same": 1.0, "code": 0.5})
            raising = await run(
                {**PYTHON, "source": "def grade(sample, item):\n    return 1 / 0\n"}
            )
            assert raising.reward is None
            assert raising.metadata.errors.python_grader_runtime_error
            details = raising.metadata.errors.python_grader_runtime_error_details
            assert "ZeroDivisionError" in details
            with pytest.raises(openai.BadRequestError):
                await run({**CHECK, "operation": "is"})


async def test_no_request_that_the_document_allows_is_a_defect(tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    command = Path(sys.executable).parent / "st"
    with sandbox_service.running("--languages", "python") as (sandbox, _):
        client = AsyncExecutionClient(sandbox)
        async with (
            client,
            serving(verifier="exact", sandbox=client) as facade,
        ):
            told = [command, "run", f"http://{facade.address}/openapi.json", "--phases", "fuzzing",
                    "--checks", "not_a_server_error", "-n", "20", "--seed", "1"]  # fmt: skip
            ran = await asyncio.to_thread(
                subprocess.run, told, capture_output=True, text=True, cwd=tmp_path
            )
            assert ran.returncode == 0, ran.stdout[-3000:]
