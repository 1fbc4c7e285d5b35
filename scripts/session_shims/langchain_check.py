"""LangChain's standard tests of a sandbox for deep agents, `SandboxIntegrationTests`.

Collected by pytest in an interpreter that has langchain-tests and deepagents.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from deepagents.backends.protocol import (
    ExecuteResponse,
    FileDownloadResponse,
    FileUploadResponse,
)
from deepagents.backends.sandbox import BaseSandbox
from langchain_tests.integration_tests import SandboxIntegrationTests

from assay.clients.sessions import CellResult, SessionLimits
from session_shims.workspace import Workspace

_LIMITS = SessionLimits(
    memory_bytes=1 << 30, disk_bytes=256 << 20, output_bytes=1 << 20, max_output_bytes=64 << 20
)
_ERRORS = {
    "No such file": "file_not_found",
    "Not a directory": "invalid_path",
    "Permission denied": "permission_denied",
    "Is a directory": "is_directory",
}


class Sessions(BaseSandbox):
    """A bash session."""

    def __init__(self) -> None:
        self._space = Workspace(limits=_LIMITS)

    @property
    def id(self) -> str:
        return self._space.id

    def execute(self, command: str, *, timeout: int | None = None) -> ExecuteResponse:
        result = self._space.command(command, wall_s=timeout)
        output = (result.stdout.data + result.stderr.data).decode(errors="replace")
        cut = result.stdout.truncated or result.stderr.truncated
        return ExecuteResponse(output=output, exit_code=result.exit_code, truncated=cut)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        return [
            FileUploadResponse(path=path, error=_error(path, self._space.write(path, content)))
            for path, content in files
        ]

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        answers = []
        for path in paths:
            result, content = self._space.read(path)
            error = _error(path, result)
            answers.append(
                FileDownloadResponse(path=path, content=None if error else content, error=error)
            )
        return answers

    def close(self) -> None:
        self._space.close()


def _error(path: str, result: CellResult) -> str | None:
    if not path.startswith("/"):
        return "invalid_path"
    if result.exit_code == 0:
        return None
    text = result.stderr.data.decode(errors="replace")
    return next((word for sign, word in _ERRORS.items() if sign in text), text)


class TestSessions(SandboxIntegrationTests):
    """Theirs."""

    @pytest.fixture(scope="class")
    def sandbox(self) -> Iterator[Sessions]:
        backend = Sessions()
        yield backend
        backend.close()

    @property
    def sandbox_root_dir(self) -> str:
        return f"/tmp/{uuid.UUID(int=25)}"  # noqa: S108
