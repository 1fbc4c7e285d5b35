"""The facade asked by the peers' own clients, and by schemathesis."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sandbox_service
from assay.clients.execution import AsyncExecutionClient
from assay.reward_server.http.config import HttpConfig
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
            serving(config=HttpConfig(0, verifier="exact"), sandbox=client) as facade,
        ):
            told = [command, "run", f"http://{facade.address}/openapi.json", "--phases", "fuzzing",
                    "--checks", "not_a_server_error", "-n", "20", "--seed", "1"]  # fmt: skip
            ran = await asyncio.to_thread(
                subprocess.run, told, capture_output=True, text=True, cwd=tmp_path
            )
            assert ran.returncode == 0, ran.stdout[-3000:]
