"""A Jupyter kernel whose cells run in a Python session, for the tests of kernels and notebooks.

    python -m session_shims.kernel -f CONNECTION_FILE     (what a kernel specification says)
"""

from __future__ import annotations

import asyncio
import platform
from base64 import b64encode
from typing import Any

import grpc
from ipykernel.kernelapp import IPKernelApp
from ipykernel.kernelbase import Kernel

from assay.api.session.v1 import session_pb2 as pb
from session_shims.line import Line

_BINARY = {"image/png", "image/jpeg", "application/pdf"}
_NAMES = {pb.OUTPUT_STREAM_STDOUT: "stdout", pb.OUTPUT_STREAM_STDERR: "stderr"}


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
        streams = {name: b"" for name in _NAMES.values()}

        def watch(event: pb.ExecuteResponse) -> None:
            if event.HasField("display"):
                self._say("display_data", {"data": _texts(event.display.data), "metadata": {}})
            else:
                name = _NAMES[event.output.stream]
                whole, streams[name] = _whole(streams[name] + event.output.data)
                self._say("stream", {"name": name, "text": whole})

        def watch_here(event: pb.ExecuteResponse) -> None:
            if not silent:
                loop.call_soon_threadsafe(watch, event)

        try:
            result = await asyncio.to_thread(self._line.run, code, watch=watch_here)
        except grpc.RpcError as error:  # the session is over
            result = pb.CellResult(end=pb.CELL_END_DIED, detail=str(error.details()))
        await asyncio.sleep(0)
        if not store_history and not silent:
            self.execution_count -= 1
        count = self.execution_count
        if result.end != pb.CELL_END_COMPLETED:
            error = {
                "ename": result.error.name or pb.CellEnd.Name(result.end),
                "evalue": result.error.message or result.detail,
                "traceback": result.error.traceback.splitlines(),
            }
            if not silent:
                self._say("error", error)
            return {"status": "error", "execution_count": count, **error}
        if result.HasField("value") and not silent:
            data = _texts(result.value.data)
            self._say("execute_result", {"data": data, "metadata": {}, "execution_count": count})
        return {
            "status": "ok",
            "execution_count": count,
            "payload": [],
            "user_expressions": {
                name: self._expression(text) for name, text in (user_expressions or {}).items()
            },
        }

    def _say(self, kind: str, content: dict[str, Any]) -> None:
        self.send_response(self.iopub_socket, kind, content)

    def _expression(self, text: str) -> dict[str, Any]:
        assert self._line  # noqa: S101
        result = self._line.run(text)
        if result.HasField("error"):
            return {
                "status": "error",
                "ename": result.error.name,
                "evalue": result.error.message,
                "traceback": result.error.traceback.splitlines(),
            }
        return {"status": "ok", "data": _texts(result.value.data), "metadata": {}}

    async def do_shutdown(self, restart: bool) -> dict[str, Any]:
        if self._line:
            self._line.close()
            self._line = None
        return {"status": "ok", "restart": restart}


def _texts(bundle: Any) -> dict[str, str]:
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
