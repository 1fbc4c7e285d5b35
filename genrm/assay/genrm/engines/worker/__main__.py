"""Loads a model and serves until the engine that started this process is gone.

The engine starts it with one end of a socket pair; the kit's frames (`assay.kit.pool.frames`) hold
JSON for many requests each, NaN and infinities included:

    X  to the worker      {"ask": [job, ...]}, handed over together, see jobs.py; or
                          {"cancel": [id, ...]}: nobody waits for these any more; or
                          {"load": adapter, "folder", "id"}, {"unload": adapter, "id"}
    R  from the worker    loaded; what the engine must know of the model
    N                     it cannot be loaded; why, in a line
    D                     {"answers": [answer, ...], "batches", "rows"}
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import queue
import signal
import socket
import threading
from typing import Any

from assay.genrm.engines.worker.settings import WorkerSettings
from assay.kit import log_format
from assay.kit.pool import frames


def main() -> None:
    """Runs the worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--link-fd", type=int, required=True)
    parser.add_argument("--settings", required=True)
    parser.add_argument(log_format.WORKER_FLAG, action="store_true")
    arguments = parser.parse_args()
    # A terminal's Ctrl-C is for the service: it drains, and needs its worker for that.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    log_format.set_up_worker(arguments.log_json)
    settings = WorkerSettings(**json.loads(arguments.settings))
    _serve(socket.socket(fileno=arguments.link_fd), settings)


def _serve(line: socket.socket, settings: WorkerSettings) -> None:
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(line, inbox), daemon=True).start()
    try:
        loop = _load(settings, line, inbox)
    except Exception as error:
        # The worker's fault boundary: why it cannot be loaded is for the engine to say.
        logging.getLogger(__name__).debug("loading failed", exc_info=error)
        text = " ".join((str(error).strip() or type(error).__name__).split())
        line.sendall(frames.pack(frames.NOT_READY, 0, text[:400].encode()))
        return
    loop.run()


def _load(settings: WorkerSettings, line: socket.socket, inbox: Any) -> Any:
    # torch and transformers take seconds, and their failure is a failure to load.
    import torch  # noqa: PLC0415
    import transformers  # noqa: PLC0415
    from transformers import AutoTokenizer  # noqa: PLC0415

    from assay.genrm.engines.prompts import PromptEncoder  # noqa: PLC0415
    from assay.genrm.engines.worker.loop import BatchLoop  # noqa: PLC0415
    from assay.genrm.engines.worker.network import Network  # noqa: PLC0415
    from assay.genrm.engines.worker.vocabulary import FormTables, token_bytes  # noqa: PLC0415

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if settings.threads and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(settings.threads)
    network = Network(settings)
    tokenizer = AutoTokenizer.from_pretrained(settings.location, **settings.arguments)
    writes = network.shape is not None
    encoder = PromptEncoder(tokenizer)
    holds = writes and settings.head == "generative"
    tokens = token_bytes(tokenizer, encoder.encode_data) if holds else None
    loop = BatchLoop(
        network,
        settings,
        network.end_tokens(tokenizer),
        encoder.decode,
        lambda answers, ran: _say(
            line, frames.DONE, {"answers": answers, "batches": ran[0], "rows": ran[1]}
        ),
        inbox=inbox,
        tables=None if tokens is None else FormTables(tokens),
    )
    ready = {"write": writes, "labels": network.labels, "forms": tokens is not None}
    _say(line, frames.READY, ready)
    return loop


def _say(line: socket.socket, kind: bytes, body: dict[str, Any]) -> None:
    data = json.dumps(body, separators=(",", ":")).encode("ascii")
    line.sendall(frames.pack(kind, 0, data))


def _listen(line: socket.socket, inbox: Any) -> None:
    reader = frames.FrameReader()
    with contextlib.suppress(OSError, frames.FrameError):
        while data := line.recv(1 << 20):
            for frame in reader.feed(data):
                inbox.put(json.loads(frame.payload))
    os._exit(0)


if __name__ == "__main__":
    main()
