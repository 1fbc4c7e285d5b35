"""A Jupyter kernel whose cells run in a Python session, for the tests of kernels and notebooks.

python -m session_shims.kernel -f CONNECTION_FILE     (what a kernel specification says)
"""

from __future__ import annotations

import asyncio
import platform
from base64 import b64encode
from collections.abc import Mapping
from typing import Any

from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from assay.clients.sessions import (
    CellEnd,
    CellError,
    CellEvent,
    CellResult,
    DisplayValue,
    OutputPiece,
)
from assay.kit.errors import CallError
from session_shims.line import Line

_BINARY = {"image/png", "image/jpeg", "application/pdf"}


class SessionKernel(Kernel):
    """One session; it begins with the first cell."""

    implementation = "assay"
    implementation_version = "25.0"
    banner = "A session of a sandbox"
    language_info = {  # noqa: RUF012
        "name": "python",
        "version": platform.python_version(),
        "mimetype": "text/x-python",
        "file_extension": ".py",
    }

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._line: Line | None = None

    async def do_execute(
        self,
        code: str,
        silent: bool,
        store_history: bool = True,
        user_expressions: dict[str, str] | None = None,
        allow_stdin: bool = False,
        **_: Any,
    ) -> dict[str, Any]:
        del allow_stdin
        self._line = self._line or Line("python")
        loop = asyncio.get_running_loop()
        streams = {"stdout": b"", "stderr": b""}

        def watch(event: CellEvent) -> None:
            if isinstance(event, DisplayValue):
                self._say("display_data", {"data": _texts(event.data), "metadata": {}})
            elif isinstance(event, OutputPiece):
                name = event.stream
                whole, streams[name] = _whole(streams[name] + event.data)
                self._say("stream", {"name": name, "text": whole})

        def watch_here(event: CellEvent) -> None:
            if not silent:
                loop.call_soon_threadsafe(watch, event)

        try:
            result = await asyncio.to_thread(self._line.run, code, watch=watch_here)
        except CallError as lost:
            result = CellResult(CellEnd.DIED, detail=str(lost))
        await asyncio.sleep(0)
        if not store_history and not silent:
            self.execution_count -= 1
        count = self.execution_count
        if result.end is not CellEnd.COMPLETED:
            error = _error(result)
            if not silent:
                self._say("error", error)
            return {"status": "error", "execution_count": count, **error}
        if result.value and not silent:
            data = _texts(result.value.data)
            self._say("execute_result", {"data": data, "metadata": {}, "execution_count": count})
        expressions = {
            name: self._expression(text) for name, text in (user_expressions or {}).items()
        }
        return {
            "status": "ok",
            "execution_count": count,
            "payload": [],
            "user_expressions": expressions,
        }

    def _say(self, kind: str, content: dict[str, Any]) -> None:
        self.send_response(self.iopub_socket, kind, content)

    def _expression(self, text: str) -> dict[str, Any]:
        assert self._line  # noqa: S101
        result = self._line.run(text)
        if result.end is not CellEnd.COMPLETED:
            return {"status": "error", **_error(result)}
        data = _texts(result.value.data) if result.value else {}
        return {"status": "ok", "data": data, "metadata": {}}

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        if self._line:
            self._line.close()
            self._line = None
        return {"status": "ok", "restart": restart}


def _error(result: CellResult) -> dict[str, Any]:
    error = result.error or CellError(result.end, result.detail)
    return {
        "ename": error.name,
        "evalue": error.message,
        "traceback": error.traceback.splitlines(),
    }


def _texts(bundle: Mapping[str, bytes]) -> dict[str, str]:
    """As a notebook holds them: what is no text, by base64."""
    return {
        kind: b64encode(data).decode() if kind in _BINARY else data.decode()
        for kind, data in bundle.items()
    }


def _whole(data: bytes) -> tuple[str, bytes]:
    """The text up to the last whole character, and the rest."""
    for rest in range(min(4, len(data) + 1)):
        try:
            return data[: len(data) - rest].decode(), data[len(data) - rest :]
        except UnicodeDecodeError:
            continue
    return data.decode(errors="replace"), b""


if __name__ == "__main__":
    IPKernelApp.launch_instance(kernel_class=SessionKernel)
