"""The transformers engine's worker without its process, and transformers alone beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.genrm.engines.worker.settings import WorkerSettings


class Worker:
    """The worker's loop in this process: hand over jobs, get answers."""

    def __init__(self, folder: Path, head: str, **settings: Any) -> None:
        from transformers import AutoTokenizer

        from assay.genrm.engines.prompts import PromptEncoder
        from assay.genrm.engines.worker.network import Network

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.encoder = PromptEncoder(self.tokenizer)
        self._settings = {
            "location": str(folder),
            "arguments": {},
            "head": head,
            "device": "cpu",
            "precision": "float32",
            "good_label": 1,
            "max_batch_tokens": 16384,
            "max_batch_items": 128,
            "prefix_cache_tokens": 32768,
        } | settings
        self.network = Network(self.settings())
        self.tables: Any = None
        self.fresh()

    def settings(self, **changed: Any) -> WorkerSettings:
        """What it was made with, and what is changed."""
        return WorkerSettings(**(self._settings | changed))

    def fresh(self, **settings: Any) -> None:
        """Another loop, with nothing kept, over the same weights."""
        from assay.genrm.engines.worker.loop import BatchLoop

        self.answers: dict[int, dict[str, Any]] = {}
        self.loop = BatchLoop(
            self.network,
            self.settings(**settings),
            self.network.end_tokens(self.tokenizer),
            self.encoder.decode,
            lambda answers, _: self.answers.update({answer["id"]: answer for answer in answers}),
            tables=self.tables,
        )
        self._next = 0

    def send(self, jobs: list[dict[str, Any]]) -> list[int]:
        """Hands jobs over together; their numbers."""
        numbers = list(range(self._next, self._next + len(jobs)))
        self._next += len(jobs)
        self.loop.inbox.put(
            {"ask": [{"id": n, **job} for n, job in zip(numbers, jobs, strict=True)]}
        )
        return numbers

    def ask(self, jobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Hands jobs over together and works until all are answered."""
        numbers = self.send(jobs)
        while not all(number in self.answers for number in numbers):
            self.loop.turn()
        return [self.answers[number] for number in numbers]


class Alone:
    """transformers, one sequence at a time, nothing kept."""

    def __init__(self, folder: Path, head: str, adapter: Path | None = None) -> None:
        import transformers

        kinds = {
            "generative": transformers.AutoModelForCausalLM,
            "scalar": transformers.AutoModelForSequenceClassification,
            "step": transformers.AutoModelForTokenClassification,
        }
        self.model = kinds[head].from_pretrained(folder).eval()
        if adapter is not None:
            from peft import PeftModel

            self.model = PeftModel.from_pretrained(self.model, adapter).eval()

    def logits(self, ids: tuple[int, ...]) -> Any:
        """What the model says of one sequence."""
        import torch

        with torch.inference_mode():
            return self.model(input_ids=torch.tensor([ids])).logits[0].float()

    def logprob(self, ids: tuple[int, ...], option: tuple[int, ...]) -> float:
        """Of the option's tokens after the others."""
        logprobs = self.logits((*ids, *option)).log_softmax(-1)
        return sum(float(logprobs[len(ids) - 1 + n, token]) for n, token in enumerate(option))

    def greedy(self, ids: tuple[int, ...], count: int) -> list[int]:
        """The likeliest tokens, one after the other, up to an end of turn."""
        written: list[int] = []
        while len(written) < count:
            token = int(self.logits((*ids, *written))[-1].argmax())
            written.append(token)
            if token == self.model.config.eos_token_id:
                break
        return written
