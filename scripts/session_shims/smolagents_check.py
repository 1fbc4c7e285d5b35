"""smolagents' own tests of an executor in a container, `CommonDockerExecutorIntegration`.

Collected by pytest in an interpreter that has smolagents and docker; a checkout is in its path.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from smolagents.local_python_executor import CodeOutput
from smolagents.monitoring import AgentLogger, LogLevel
from smolagents.remote_executors import RemotePythonExecutor
from smolagents.utils import AgentError
from tests.test_remote_executors import CommonDockerExecutorIntegration

from assay.clients.sessions import CellEnd
from session_shims.line import Line, plain_text, traceback_of


class Sessions(RemotePythonExecutor):
    """Their remote executor over a Python session, as `DockerExecutor` is one over a kernel."""

    def __init__(self, logger: Any) -> None:
        super().__init__([], logger)
        self._line = Line("python")

    def run_code_raise_errors(self, code: str) -> CodeOutput:
        result = self._line.run(code)
        logs = result.stdout.data.decode()
        if result.error and result.error.name == self.FINAL_ANSWER_EXCEPTION:
            output = self._deserialize_final_answer(result.error.message, self.allow_pickle)
            return CodeOutput(output=output, logs=logs, is_final_answer=True)
        if result.end != CellEnd.COMPLETED:
            raise AgentError(traceback_of(result) or result.detail, self.logger)
        output = plain_text(result) or None
        return CodeOutput(output=output, logs=logs, is_final_answer=False)

    def install_packages(self, additional_imports: list[str]) -> list[str]:
        """A session has the packages that its operator chose."""
        return additional_imports

    def close(self) -> None:
        self._line.close()


class TestSessions(CommonDockerExecutorIntegration):
    """Theirs."""

    @pytest.fixture
    def custom_executor(self) -> Iterator[Sessions]:
        console = Console(force_terminal=False, file=io.StringIO())
        executor = Sessions(AgentLogger(LogLevel.INFO, console))
        yield executor
        executor.close()
