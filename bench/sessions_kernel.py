"""Drives Jupyter kernels for `bench.sessions_peers`, in the environment that has them.

Reads one JSON object a line, {"do": "open" | "run" | "close", "code": ...}, and answers each with
{"out": what the cell printed}.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from jupyter_client.manager import KernelManager

_START_S = 60.0


class Kernel:
    """One kernel at a time."""

    def open(self) -> None:
        """Starts it, and waits until it answers."""
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel()
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=_START_S)

    def run(self, code: str) -> str:
        """A cell; returns what it printed."""
        printed: list[str] = []

        def note(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        answer = self._client.execute_interactive(code, output_hook=note, timeout=_START_S)
        if answer["content"]["status"] != "ok":
            raise RuntimeError(f"the kernel answered {answer['content']}")
        return "".join(printed)

    def close(self) -> None:
        """Kills it."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def main() -> None:
    """Until stdin ends."""
    kernel, printed = Kernel(), ""
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["do"] == "open":
            kernel.open()
        elif asked["do"] == "close":
            kernel.close()
        else:
            printed = kernel.run(asked["code"])
        print(json.dumps({"out": printed}), flush=True)


if __name__ == "__main__":
    main()
