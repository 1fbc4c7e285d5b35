"""P(correct) of verifications: PAG's best of n (arXiv 2506.10406, section 4.2).

After a verification the policy is asked, without sampling, how likely "correct" is against "wrong"
at its verdict: after the text before the closing sentence and the part of the sentence that both
verdicts share. A verification with another closing is read up to it, one without a verdict to its
end.

Differences from the paper:

1. The first differing tokens of both verdicts share the probability; the paper takes that of
   "correct" over the whole vocabulary. They agree where the policy closes as asked.
2. The probability is the policy's at temperature 1, whatever the attempts' was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from assay.clients.judging.verdicts import CLOSING, OPTIONS, before_verdict
from assay.trainer.engines.hf import answering, is_sharded, left_padded
from assay.trainer.engines.types import Request, Response, Tokenizer
from assay.trainer.rollouts.types import OneRank, Ranks


def until_verdict(ids: Sequence[int], tokenizer: Tokenizer) -> tuple[tuple[int, ...], int, int]:
    """Where a verification's verdict begins, given the policy's tokens.

    Returns:
        The tokens before "correct" or "wrong", and the first token of each that differs.
    """
    text = _text(ids, tokenizer)
    before = before_verdict(text)
    kept, shown = len(ids), text
    while not (len(shown) <= len(before) and before.startswith(shown)):
        kept -= 1
        shown = _text(ids[:kept], tokenizer)
    rest = before[len(shown) :]
    if before == text and text and not text[-1].isspace():  # no verdict: a sentence of its own
        rest += " "
    correct, wrong = (
        tokenizer(f"{rest}{CLOSING}{option}.", add_special_tokens=False)["input_ids"]
        for option in OPTIONS
    )
    alike = next(n for n, (a, b) in enumerate(zip(correct, wrong, strict=False)) if a != b)
    return (*ids[:kept], *correct[:alike]), correct[alike], wrong[alike]


def _text(ids: Sequence[int], tokenizer: Tokenizer) -> str:
    return str(tokenizer.decode(list(ids), skip_special_tokens=True))


class Confidence:
    """Tells how sure the policy is of its attempts.

    Args:
        model_context: opens the policy: unwrapped, with its weights gathered.
        tokenizer: with a pad token.
        end_ids: tokens that end a turn, left out of a verification.
        batch: verifications at a time; 0 for all.
    """

    def __init__(
        self,
        model_context: Callable[[], AbstractContextManager[Any]],
        tokenizer: Tokenizer,
        *,
        end_ids: frozenset[int],
        batch: int = 0,
        ranks: Ranks | None = None,
        autocast: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._model_context = model_context
        self._tokenizer = tokenizer
        self._end_ids = end_ids
        self._batch = batch
        self._ranks = ranks or OneRank()
        self._autocast = autocast

    def __call__(self, asked: Sequence[Request], verifications: Sequence[Response]) -> list[float]:
        """P(correct) in [0, 1] of each verification: what was asked, and what the policy said.

        Every process calls it. One with fewer verifications adds dummy rows, which sharded weights
        need.
        """
        rows = [
            self._row(request, response)
            for request, response in zip(asked, verifications, strict=True)
        ]
        most = int(self._ranks.gather(np.array([[float(len(rows))]])).max())
        rows += [([self._tokenizer.pad_token_id], 0, 0)] * (most - len(rows))
        size = self._batch or most
        with self._model_context() as model, torch.no_grad(), self._autocast():
            chances = [
                chance
                for start in range(0, len(rows), size)
                for chance in self._chances(model, rows[start : start + size])
            ]
        return chances[: len(asked)]

    def _row(self, request: Request, response: Response) -> tuple[list[int], int, int]:
        ids = list(response.ids)
        while ids and ids[-1] in self._end_ids:
            ids.pop()
        before, correct, wrong = until_verdict(ids, self._tokenizer)
        return [*request.draw.prompt_ids, *before], correct, wrong

    def _chances(self, model: Any, rows: Sequence[tuple[list[int], int, int]]) -> list[float]:
        pad_id = self._tokenizer.pad_token_id
        input_ids, attention_mask = left_padded([row[0] for row in rows], pad_id)
        settings = GenerationConfig(
            do_sample=False,
            max_new_tokens=1,
            pad_token_id=pad_id,
            output_logits=True,
            return_dict_in_generate=True,
            disable_compile=True,
        )
        with answering(model, settings):
            out = model.generate(
                input_ids=input_ids.to(model.device),
                attention_mask=attention_mask.to(model.device),
                generation_config=settings,
                synced_gpus=True if is_sharded(model) else None,
            )
        options_B2 = torch.tensor([row[1:] for row in rows], device=out.logits[0].device)
        logits_B2 = out.logits[0].float().gather(1, options_B2)
        chances: list[float] = logits_B2.softmax(dim=1)[:, 0].tolist()
        return chances
