"""OpenEnv's own tests of its coding environment: its `PyExecutor` is a Python session of ours.

A pytest plugin for an interpreter that has what OpenEnv's core imports; src and envs of a checkout
are in its path. `CodingEnv.from_docker_image`, the container, is the environment in the process.
"""

from __future__ import annotations

import importlib
from types import SimpleNamespace
from typing import Any

from openenv.core.env_server.types import CodeExecResult

from assay.clients.sessions import CellEnd
from session_shims.line import Line, plain_text, traceback_of

_MOST_OPEN = 16
_open: list[Line] = []


class Sessions:
    """Their executor, in a session."""

    def __init__(self, additional_imports: list[str] | None = None) -> None:
        del additional_imports
        self._line = Line("python")
        _open.append(self._line)
        if len(_open) > _MOST_OPEN:
            _open.pop(0).close()

    def run(self, code: str) -> CodeExecResult:
        result = self._line.run(code)
        failed = result.end != CellEnd.COMPLETED
        stdout = result.stdout.data.decode() + plain_text(result)
        stderr = result.stderr.data.decode() + traceback_of(result)
        return CodeExecResult(stdout=stdout, stderr=stderr, exit_code=int(failed))


class _Direct:
    """What their client offers, with the environment in this process."""

    def __init__(self) -> None:
        self._environment = importlib.import_module(
            "coding_env.server.python_codeact_env"
        ).PythonCodeActEnv()

    def reset(self) -> Any:
        return _result(self._environment.reset())

    def step(self, action: Any) -> Any:
        return _result(self._environment.step(action))

    def state(self) -> Any:
        return self._environment.state

    def close(self) -> None:
        """The sessions are closed later."""


def _result(observation: Any) -> SimpleNamespace:
    return SimpleNamespace(observation=observation, reward=observation.reward, done=False)


for package in ("envs.coding_env", "coding_env"):
    server: Any = importlib.import_module(f"{package}.server.python_codeact_env")
    server.PyExecutor = Sessions
importlib.import_module("coding_env").CodingEnv.from_docker_image = lambda _: _Direct()
