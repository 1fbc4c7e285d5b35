"""P(correct) of verifications: PAG's best of n (arXiv 2506.10406, section 4.2).

The policy has written a verification. It is asked once more, without drawing anything, how likely
"correct" is against "wrong" where its verdict begins: after all that stands before the closing
sentence, and after as much of the sentence as the two verdicts share. A verification that closes in
other words is read up to them, and one without a verdict to its end.

Differences from the paper:

1. The two verdicts' first differing tokens share the probability; the paper takes that of "correct"
   alone, over the whole vocabulary. Where the policy closes as it is asked to, they are the same.
2. The probability is the policy's at temperature 1, whatever the attempts were drawn with.
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
    """Where a verification's verdict begins.

    Args:
        ids: what the policy wrote.
        tokenizer: its own.

    Returns:
        The tokens before "correct" or "wrong", the policy's own up to the closing sentence; and the
        first tokens of the two that differ.
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
        model_context: opens the policy: unwrapped, with its weights at hand.
        tokenizer: with a pad token.
        end_ids: tokens that end a turn, which are not a part of what a verification says.
        batch: verifications at a time; 0 for all.
        ranks: the processes.
        autocast: the context in which the policy computes.
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

    def __call__(self, asked: Sequence[Request], said: Sequence[Response]) -> list[float]:
        """P(correct) of each verification, in [0, 1].

        Every process calls it. Who asks for fewer than another reads rows that nobody looks at, as
        sharded weights need.

        Args:
            asked: what the policy was shown.
            said: what it wrote.
        """
        rows = [self._row(request, response) for request, response in zip(asked, said, strict=True)]
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
