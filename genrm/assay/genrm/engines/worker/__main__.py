"""Loads a model, says so, and serves until the engine that started this process is gone.

Not for people: `assay.genrm.engines.link` starts it, with one end of a socket pair.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import queue
import signal
import socket
import threading
from typing import Any

from assay.genrm.engines.worker.frames import HEADER, MAX_BYTES, Settings, pack
from assay.rpc import log_format


def main() -> None:
    """Runs the worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    arguments = parser.parse_args()
    # A terminal's Ctrl-C is for the service: it drains, and needs its worker for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log_format.set_up_worker(arguments.log_json)
    _serve(socket.socket(fileno=arguments.fd))


def _serve(line: socket.socket) -> None:
    first = _receive(line)
    if first is None:
        return
    settings = Settings(**first["settings"])
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(line, inbox), daemon=True).start()
    try:
        loop = _load(settings, line, inbox)
    except Exception as error:
        # The worker's border: why it cannot be loaded is for the engine to say.
        logging.getLogger(__name__).debug("loading failed", exc_info=error)
        text = " ".join((str(error).strip() or type(error).__name__).split())
        line.sendall(pack({"failed": text[:400]}))
        return
    loop.run()


def _load(settings: Settings, line: socket.socket, inbox: Any) -> Any:
    # torch and transformers take seconds, and their failure is a failure to load.
    import transformers  # noqa: PLC0415
    from transformers import AutoTokenizer  # noqa: PLC0415

    from assay.genrm.engines.prompts import PromptEncoder  # noqa: PLC0415
    from assay.genrm.engines.worker.loop import Loop  # noqa: PLC0415
    from assay.genrm.engines.worker.network import Network  # noqa: PLC0415

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    network = Network(settings)
    tokenizer = AutoTokenizer.from_pretrained(settings.location, **settings.arguments)
    loop = Loop(
        network,
        settings,
        network.end_tokens(tokenizer),
        PromptEncoder(tokenizer).decode,
        lambda answers, ran: line.sendall(
            pack({"answers": answers, "batches": ran[0], "rows": ran[1]})
        ),
        inbox=inbox,
    )
    line.sendall(pack({"ready": {"write": network.shape is not None, "labels": network.labels}}))
    return loop


def _listen(line: socket.socket, inbox: Any) -> None:
    """Passes on what arrives; ends the process when the other side is gone."""
    while (message := _receive(line)) is not None:
        inbox.put(message)
    os._exit(0)


def _receive(line: socket.socket) -> dict[str, Any] | None:
    """The next message; None when the other side is gone."""
    try:
        (size,) = HEADER.unpack(_exactly(line, HEADER.size))
        if size > MAX_BYTES:
            return None
        body: dict[str, Any] = json.loads(_exactly(line, size))
    except (OSError, EOFError):
        return None
    return body


def _exactly(line: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = line.recv(min(1 << 20, size - len(parts)))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


if __name__ == "__main__":
    main()
