"""An OpenAI-like server that says what it is told to: a policy for tests of environments."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def completion(said: str | dict[str, Any]) -> dict[str, Any]:
    """A chat completion as OpenAI's API has it, of a text or a call's arguments by its name."""
    message: dict[str, Any] = {"role": "assistant", "content": said}
    if not isinstance(said, str):
        calls = [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for number, (name, arguments) in enumerate(said.items())
        ]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": "stop" if isinstance(said, str) else "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


@contextmanager
def scripted_policy(*texts: str | dict[str, Any]) -> Iterator[str]:
    """The base URL of a server that answers so in turn, with the last one for ever."""
    left = list(texts)
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                text = left.pop(0) if len(left) > 1 else left[0]
            body = json.dumps(completion(text)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
