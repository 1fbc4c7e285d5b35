"""What tests of vLLM share: where it is, a server of it, and direct passes to compare with."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from assay.genrm.engines.base import Prompt, PromptMessage, PromptPiece

TOLERANCE = 1e-4
START_S = 400.0
_SPEC = importlib.util.find_spec("vllm")
HERE = _SPEC is not None and _SPEC.origin is not None
PYTHON = sys.executable if HERE else os.environ.get("ASSAY_VLLM_PYTHON", "")
LONG = "The question is which of the two answers follows from what is said. " * 12


def prompt(candidate: str, prefill: str = "The verdict:") -> Prompt:
    """A judge's prompt with a long beginning that all candidates share."""
    return Prompt(
        (
            PromptMessage("system", (PromptPiece("You check answers."),)),
            PromptMessage(
                "user",
                (
                    PromptPiece(LONG),
                    PromptPiece(candidate, trusted=False, cuttable=True),
                    PromptPiece("\nSay which is better."),
                ),
            ),
        ),
        prefill,
    )


def dialogue(candidate: str) -> Prompt:
    """What a head rates."""
    return Prompt(
        (
            PromptMessage("user", (PromptPiece(LONG, trusted=False),)),
            PromptMessage("assistant", (PromptPiece(candidate, trusted=False, cuttable=True),)),
        )
    )


class Direct:
    """Transformers' own forward pass, one sequence at a time.

    Args:
        folder: of the model.
        kind: of its head.
    """

    def __init__(self, folder: Path, kind: str = "causal") -> None:
        import transformers

        classes = {
            "causal": transformers.AutoModelForCausalLM,
            "scalar": transformers.AutoModelForSequenceClassification,
            "step": transformers.AutoModelForTokenClassification,
        }
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.model = classes[kind].from_pretrained(folder, dtype="float32").eval()

    def logits(self, ids: Any) -> Any:
        """[T, V], [labels] or [T, labels]."""
        import torch

        with torch.no_grad():
            return self.model(torch.tensor([list(ids)])).logits[0].double()

    def logprobs(self, ids: Any, options: Any) -> list[float]:
        """Of each option, a sequence of ids, after the prompt's ids."""
        found = []
        for option in options:
            table = self.logits([*ids, *option]).log_softmax(-1)
            rows = zip(range(len(ids) - 1, len(ids) + len(option)), option, strict=False)
            found.append(sum(float(table[at, token]) for at, token in rows))
        return found

    def greedy(self, ids: Any, count: int) -> list[int]:
        """What is likeliest, token by token, until the end of the turn."""
        new: list[int] = []
        while len(new) < count:
            new.append(int(self.logits([*ids, *new])[-1].argmax()))
            if new[-1] == self.tokenizer.eos_token_id:
                break
        return new

    def rendered(self, asked: Prompt, *, answered: bool = False) -> list[int]:
        """Ids of a prompt as a server makes them: rendered as one text, then tokenised."""
        messages = [{"role": m.role, "content": m.text} for m in asked.messages]
        text = self.tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=not answered
        )
        return list(self.tokenizer(text + asked.prefill, add_special_tokens=False)["input_ids"])


def tiny_policy(*, tied: bool = False, seed: int = 0, **settings: Any) -> Any:
    """A Llama of two layers that vLLM's CPU build can run: its heads have 32 dimensions."""
    import torch
    from transformers import AutoModelForCausalLM, LlamaConfig

    config = LlamaConfig(
        **{
            "vocab_size": 24, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32,
            "max_position_embeddings": 256, "tie_word_embeddings": tied, "pad_token_id": 0,
            "eos_token_id": 1, "bos_token_id": None, "initializer_range": 0.4, **settings,
        }
    )  # fmt: skip
    load: Any = AutoModelForCausalLM.from_config
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return load(config).train()


def policy_folder(folder: Path, *, tied: bool = False) -> Path:
    """A folder with a tiny policy and its tokenizer, for `model.name` of a run on vLLM.

    With `rollout.backend=vllm` that run needs no more: vLLM's loop starts in its process. For
    `rollout.vllm.mode=server` see `policy_server`.
    """
    from trainer_support import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    model = tiny_policy(
        tied=tied, vocab_size=len(tokenizer), pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id, max_position_embeddings=1024,
    )  # fmt: skip
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@contextmanager
def policy_server(
    model: Path, log: Path, *arguments: str, own_draws: bool = True
) -> Iterator[tuple[str, int]]:
    """A vLLM server that a trainer may use; gives its URL, for rollout.vllm.server_url, and pid."""
    from assay.trainer.engines.vllm_requests import PROCESSOR, logprobs_mode
    from assay.trainer.engines.vllm_server import EXTENSION

    own = ["--logits-processors", PROCESSOR] if own_draws else ["--no-enable-chunked-prefill"]
    with vllm_server(
        model, log, "--skip-tokenizer-init", "--enable-scale-out", "--block-size", "32",
        "--worker-extension-cls", EXTENSION,
        "--logprobs-mode", logprobs_mode(own_draws=own_draws), *own, *arguments,
        environment={"VLLM_SERVER_DEV_MODE": "1"},
    ) as (url, pid):  # fmt: skip
        yield url.removesuffix("/v1"), pid


@contextmanager
def vllm_server(
    model: Path, log: Path, *arguments: str, environment: Mapping[str, str] | None = None
) -> Iterator[tuple[str, int]]:
    """A vLLM server of the model on CPU; gives its base URL and its process's id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        **(environment or {}),
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "TORCHDYNAMO_DISABLE": "1",
    }
    command = [
        PYTHON, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model),
        "--served-model-name", "tiny", "--port", str(port), "--host", "127.0.0.1",
        "--dtype", "float32", "--enforce-eager", "--enable-prompt-tokens-details", *arguments,
    ]  # fmt: skip
    with log.open("w") as out:
        process = subprocess.Popen(
            command, env=environment, stdout=out, stderr=out, start_new_session=True
        )
        try:
            _await(port, process, log)
            yield f"http://127.0.0.1:{port}/v1", process.pid
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(10)


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise AssertionError(f"vLLM did not start: {log.read_text()[-3000:]}")
