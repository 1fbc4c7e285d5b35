"""A small real HTTP server that runs a tiny model behind the routes of OpenAI and vLLM.

Its faults are knobs: what `faults` holds is used up one by one, by the next requests to a route.
"""

from __future__ import annotations

import json
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

Style = Literal["vllm", "hosted", "plain", "chat-only"]
Fault = Literal["429", "503", "500", "401", "hang", "cut", "reset", "no-logprobs", "nan", "html"]

Json = dict[str, Any]


@dataclass
class TinyServer:
    """One model behind HTTP.

    Attributes:
        model: a folder of tests.genrm_support.
        kind: what the model has on top.
        style: vllm: everything; hosted: chat with 20 log-probabilities and nothing else; plain:
            text completions alone; chat-only: chat without log-probabilities.
        name: what it calls the model.
        key: the API key it wants; empty for none.
        context: most tokens.
        top: most log-probabilities listed.
        picks: knows logprob_token_ids.
        template: its chat template; empty for the tokenizer's.
        heads: the routes of a scalar head: /classify, /score.
        raw: heeds use_activation; an embedding model's /score has similarities only.
        faults: of requests to come to completions, classify and pooling, the next one first.
        retry_after: what 429 and 503 say.
        asked: paths and bodies, in order.
    """

    model: Path
    kind: str = "causal"
    style: Style = "vllm"
    name: str = "tiny"
    key: str = ""
    context: int = 4096
    top: int = 20
    picks: bool = True
    template: str = ""
    heads: tuple[str, ...] = ("/classify", "/score")
    raw: bool = True
    faults: list[Fault] = field(default_factory=list)
    retry_after: str = ""
    asked: list[tuple[str, Json]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        import transformers

        self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.model)
        classes = {
            "causal": transformers.AutoModelForCausalLM,
            "scalar": transformers.AutoModelForSequenceClassification,
            "step": transformers.AutoModelForTokenClassification,
        }
        self.net = classes[self.kind].from_pretrained(self.model).eval()
        self.lock = threading.Lock()

    # What the routes answer

    def answer(self, path: str, body: Json) -> tuple[int, Json]:
        routes = {"/v1/models": self.models}
        if self.style == "vllm":
            routes["/tokenize"] = self.tokenize
            routes["/detokenize"] = self.detokenize
        if self.kind == "causal" and self.style != "plain":
            routes["/v1/chat/completions"] = self.chat
        if self.kind == "causal" and self.style in ("vllm", "plain"):
            routes["/v1/completions"] = self.completion
        if self.kind == "scalar":
            heads = {"/classify": self.classify, "/score": self.score}
            routes |= {path: heads[path] for path in self.heads}
        if self.kind == "step":
            routes["/pooling"] = self.pooling
        if path not in routes:
            return 404, {"detail": "Not Found"}
        if body and body.get("model") != self.name:
            return 404, {"error": {"message": "no such model"}}
        return routes[path](body)

    def models(self, _: Json) -> tuple[int, Json]:
        model: Json = {"id": self.name, "owned_by": "somebody"}
        if self.style == "vllm":
            model |= {"owned_by": "vllm", "max_model_len": self.context}
        return 200, {"data": [model]}

    def tokenize(self, body: Json) -> tuple[int, Json]:
        ids = self.ids_of(body)
        return 200, {"tokens": ids, "count": len(ids), "max_model_len": self.context}

    def detokenize(self, body: Json) -> tuple[int, Json]:
        return 200, {"prompt": self.tokenizer.decode(body["tokens"])}

    def ids_of(self, body: Json) -> list[int]:
        if "messages" not in body:
            return list(self.tokenizer(body["prompt"], add_special_tokens=False)["input_ids"])
        text = self.tokenizer.apply_chat_template(
            body["messages"],
            tokenize=False,
            add_generation_prompt=body.get("add_generation_prompt", True),
            continue_final_message=body.get("continue_final_message", False),
            **({"chat_template": self.template} if self.template else {}),
            **body.get("chat_template_kwargs", {}),
        )
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def chat(self, body: Json) -> tuple[int, Json]:
        if self.style != "vllm":
            body = {k: v for k, v in body.items() if k != "continue_final_message"}
            body.pop("add_generation_prompt", None)
        ids = self.ids_of(body)
        if refused := self.too_long(ids, body):
            return refused
        new, tops = self.write(ids, body)
        choice: Json = {
            "message": {"role": "assistant", "content": self.text(new)},
            "finish_reason": "stop" if len(new) < body["max_tokens"] else "length",
        }
        if body.get("logprobs") and self.style != "chat-only":
            listed = self.listed(tops[0], min(body["top_logprobs"], self.top))
            choice["logprobs"] = {
                "content": [{"top_logprobs": [{"token": t, "logprob": v} for _, t, v in listed]}]
            }
        return 200, {"choices": [choice], "usage": self.usage(ids, new)}

    def completion(self, body: Json) -> tuple[int, Json]:
        prompt = body["prompt"]
        ids = self.ids_of(body) if isinstance(prompt, str) else list(prompt)
        if refused := self.too_long(ids, body):
            return refused
        new, tops = self.write(ids, body)
        choice: Json = {
            "text": self.text(new),
            "finish_reason": "stop" if len(new) < body["max_tokens"] else "length",
        }
        if body.get("logprobs"):
            picked = body.get("logprob_token_ids") if self.picks else None
            listed = self.listed(tops[0], min(body["logprobs"], self.top), picked)
            named = body.get("return_tokens_as_token_ids")
            choice["logprobs"] = {
                "top_logprobs": [{f"token_id:{i}" if named else t: v for i, t, v in listed}]
            }
        return 200, {"choices": [choice], "usage": self.usage(ids, new)}

    def classify(self, body: Json) -> tuple[int, Json]:
        ids = self.ids_of({"add_generation_prompt": False, **body})
        if refused := self.too_long(ids, body):
            return refused
        probs = self.head(ids, body)
        entry = {"index": 0, "label": "LABEL_0", "probs": probs, "num_classes": len(probs)}
        return 200, self.pooled("classify", [entry], ids)

    def score(self, body: Json) -> tuple[int, Json]:
        """A pair, as a cross-encoder of vLLM reads it; ScoreResponse of its protocol."""
        ids = self.pair_ids(body["text_1"], body["text_2"])
        if refused := self.too_long(ids, body):
            return refused
        [score] = self.head(ids, body)
        return 200, self.pooled("embd", [{"index": 0, "object": "score", "score": score}], ids)

    def pair_ids(self, question: str, response: str) -> list[int]:
        parts = [self.tokenizer(text)["input_ids"] for text in (question, response)]
        return [*parts[0], self.tokenizer.eos_token_id, *parts[1]]

    def head(self, ids: list[int], body: Json) -> list[float]:
        logits = self.forward(ids)[0].tolist()
        if body.get("use_activation", True) or not self.raw:
            logits = [1 / (1 + math.exp(-value)) for value in logits]
        return [float(value) for value in logits]

    def pooling(self, body: Json) -> tuple[int, Json]:
        ids = body["input"]
        entry = {"index": 0, "object": "pooling", "data": self.forward(ids)[0].tolist()}
        return 200, self.pooled("pool", [entry], ids)

    def pooled(self, what: str, data: list[Json], ids: list[int]) -> Json:
        """What the pooling routes of vLLM answer."""
        usage = {"prompt_tokens": len(ids), "total_tokens": len(ids), "completion_tokens": 0}
        head = {"id": f"{what}-1", "object": "list", "created": 1, "model": self.name}
        return {**head, "data": data, "usage": {**usage, "prompt_tokens_details": None}}

    # The model

    def forward(self, ids: list[int]) -> Any:
        import torch

        with self.lock, torch.no_grad():
            return self.net(torch.tensor([ids])).logits

    def write(self, ids: list[int], body: Json) -> tuple[list[int], list[Any]]:
        import torch

        new: list[int] = []
        tops = []
        torch.manual_seed(body.get("seed", 0))
        for _ in range(body["max_tokens"]):
            logprobs = torch.log_softmax(self.forward([*ids, *new])[0, -1].double(), -1)
            tops.append(logprobs)
            heat = body.get("temperature", 1.0)
            token = int(
                logprobs.argmax()
                if heat == 0
                else torch.multinomial((logprobs / heat).softmax(-1), 1)
            )
            if token == self.tokenizer.eos_token_id:
                break
            new.append(token)
        return new, tops

    def listed(
        self, logprobs: Any, count: int, picked: list[int] | None = None
    ) -> list[tuple[int, str, float]]:
        ids = picked or logprobs.topk(count).indices.tolist()
        return [(i, self.tokenizer.decode([i]), max(-9999.0, float(logprobs[i]))) for i in ids]

    def text(self, ids: list[int]) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def usage(self, ids: list[int], new: list[int]) -> Json:
        return {
            "prompt_tokens": len(ids),
            "completion_tokens": len(new),
            "prompt_tokens_details": {"cached_tokens": len(ids) // 2},
        }

    def too_long(self, ids: list[int], body: Json) -> tuple[int, Json] | None:
        if len(ids) + body.get("max_tokens", 0) <= self.context:
            return None
        said = (
            f"This model's maximum context length is {self.context} tokens. However, your "
            f"prompt contains {len(ids)} input tokens."
        )
        return 400, {"error": {"message": said, "code": 400}}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served: TinyServer

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_GET(self) -> None:
        self._serve({})

    def do_POST(self) -> None:
        size = int(self.headers["Content-Length"])
        self._serve(json.loads(self.rfile.read(size)))

    def _serve(self, body: Json) -> None:
        served = self.served
        said = self.headers.get("Authorization", "")
        served.keys.append(said)
        served.asked.append((self.path, body))
        fault = ""
        if served.faults and self.path not in (
            "/v1/models",
            "/tokenize",
            "/detokenize",
            "/tokenizer_info",
        ):
            fault = served.faults.pop(0)
        if fault == "hang":
            time.sleep(5)
            return
        if fault == "reset":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        if served.key and said != f"Bearer {served.key}":
            fault = "401"
        if fault in ("429", "503", "500", "401"):
            self._send(int(fault), {"error": {"message": f"out of order, {said}"}})
            return
        status, answer = served.answer(self.path, body)
        text = json.dumps(answer)
        if fault == "no-logprobs":
            answer["choices"][0].pop("logprobs", None)
            text = json.dumps(answer)
        if fault == "nan":
            text = _with_nan(text)
        if fault == "html":
            text = "<html>It works</html>"
        self._send(status, text, cut=fault == "cut")

    def _send(self, status: int, answer: Json | str, *, cut: bool = False) -> None:
        content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        if self.served.retry_after and status in (429, 503):
            self.send_header("Retry-After", self.served.retry_after)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if cut else content)
        if cut:
            self.close_connection = True


def _with_nan(text: str) -> str:
    """Every number with a fraction becomes NaN, as a server with broken weights may say it."""

    def spoil(value: Any) -> Any:
        if isinstance(value, float):
            return math.nan
        if isinstance(value, list):
            return [spoil(one) for one in value]
        if isinstance(value, dict):
            return {key: spoil(one) for key, one in value.items()}
        return value

    return json.dumps(spoil(json.loads(text)))


@contextmanager
def serving(tiny: TinyServer, port: int = 0) -> Iterator[str]:
    """Serves on a port of its own; gives the base URL."""
    handler = type("Handler", (_Handler,), {"served": tiny})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        with suppress(OSError):
            server.shutdown()
            server.server_close()
        thread.join(5)
