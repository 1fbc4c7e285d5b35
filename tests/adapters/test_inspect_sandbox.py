"""The sandbox for Inspect: its own checks of a provider, and whole evals whose tools run in it."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import sandbox_service
from assay.clients.sessions import SessionClient

pytest.importorskip("inspect_ai", reason="see `make test-adapters`")

from inspect_ai import Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageTool, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import OutputLimitExceededError, SandboxEnvironment, SandboxEnvironmentSpec
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403

from assay.clients.trainers.inspect_sandbox import AssaySandbox, AssaySandboxConfig

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

_ROOM = {"memory_bytes": 1 << 30, "disk_bytes": 256 << 20}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    with sandbox_service.running() as found:
        yield found


@pytest.fixture(scope="module")
def target(server: tuple[str, subprocess.Popen[str]]) -> str:
    return server[0]


@pytest.fixture
async def sandbox_env(
    target: str, request: pytest.FixtureRequest
) -> AsyncIterator[SandboxEnvironment]:
    if request.node.name == "test_exec_as_user":
        request.applymarker(pytest.mark.xfail(reason="a session has one user", strict=True))
    config = AssaySandboxConfig(target=target, **_ROOM)
    environments = await AssaySandbox.sample_init("check", config, {})
    yield environments["default"]
    await AssaySandbox.sample_cleanup("check", config, environments, False)


async def test_what_a_program_ends_is_its_own_doing(sandbox_env: SandboxEnvironment) -> None:
    greedy = ["python3", "-c", "x = bytearray(3 << 30); x[::4096] = b'1' * len(x[::4096])"]
    result = await sandbox_env.exec(greedy)
    assert not result.success


async def test_output_beyond_the_limit_says_so(sandbox_env: SandboxEnvironment) -> None:
    with pytest.raises(OutputLimitExceededError) as error:
        await sandbox_env.exec(["sh", "-c", "yes | head -c 12000000"])
    assert error.value.truncated_output


async def test_commands_leave_the_shell_as_it_was(sandbox_env: SandboxEnvironment) -> None:
    await sandbox_env.exec(["sh", "-c", "exit 3"], env={"PATH": "/nowhere"}, cwd="/tmp")
    result = await sandbox_env.exec(["pwd"], env={"A": "b c; echo $HOME"})
    assert (result.success, result.stdout.count("\n")) == (True, 1)


def _evaluate(tmp_path: Path, target: str, commands: list[str], **facts: object) -> EvalLog:
    """A model that calls the tool with each command, then says what it last saw."""
    outputs = [
        ModelOutput.for_tool_call("mockllm/model", "bash", {"command": command})
        for command in commands
    ]
    outputs.append(ModelOutput.from_content("mockllm/model", "done"))
    for output in outputs:
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    config = AssaySandboxConfig(target=target, **facts)  # type: ignore[arg-type]
    (log,) = run_eval(
        Task(
            dataset=[Sample(input="?", target="done", files={"data/a.txt": "from the sample"})],
            solver=[use_tools(bash(timeout=20)), generate()],
            scorer=includes(),
            sandbox=SandboxEnvironmentSpec("assay", config),
        ),
        model=get_model("mockllm/model", custom_outputs=outputs),
        log_dir=str(tmp_path),
        display="none",
    )
    return log


def _said(log: EvalLog) -> list[str]:
    assert log.status == "success", log.error
    assert log.samples is not None
    told = [m for m in log.samples[0].messages if isinstance(m, ChatMessageTool)]
    assert [m.error for m in told] == [None] * len(told)
    return [m.text for m in told]


def test_an_eval_runs_its_tools_in_a_session(tmp_path: Path, target: str) -> None:
    commands = ["cat data/a.txt", "echo 41 > x", "python3 -c 'print(int(open(\"x\").read()) + 1)'"]
    assert [text.strip() for text in _said(_evaluate(tmp_path, target, commands))] == [
        "from the sample",
        "",
        "42",
    ]
    with SessionClient(target) as client:
        assert client.describe().open == 0


def test_a_sandbox_that_is_not_there_is_an_error_of_the_sample(tmp_path: Path) -> None:
    assert _evaluate(tmp_path, "127.0.0.1:9", ["true"]).status == "error"


def test_it_is_found_by_its_name() -> None:
    assert registry_find_sandboxenv("assay") is AssaySandbox
