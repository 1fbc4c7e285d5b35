"""Checks that an engine with weights of its own answers as the policy does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import GenerationConfig

from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import EngineHost, OpenRequest
from assay.trainer.engines.hf import answering
from assay.trainer.engines.types import Draw, Request, Sampling
from assay.trainer.errors import TrainingStoppedError

PROBES = 2
"""How many of a run's first syncs are probed: the second is the first over weights of the policy.
"""
_PROMPTS = 4
_TOKENS = 8
_TEMPERATURE = 0.7  # not 1, so that log-probabilities before the temperature are found out
_ROUNDING = 0.01  # in nats, of float32
_PLAIN = 1_000, 30_000  # of a large vocabulary, where no token stands for an image
_SAID = Problem("", "", (), "")


def probes(host: EngineHost, vocabulary: int, round_: int) -> list[OpenRequest]:
    """Rows for an engine to draw, without tokens that end them; others in each round."""
    low, high = _PLAIN if vocabulary > _PLAIN[1] else (0, vocabulary)
    numbers = np.random.Philox(key=np.array([round_, 0], dtype=np.uint64))
    ids_PT = low + numbers.random_raw(_PROMPTS * _TOKENS).reshape(_PROMPTS, _TOKENS) % (high - low)
    begin = getattr(host.tokenizer, "bos_token_id", None)
    if begin is not None:
        ids_PT[:, 0] = begin
    sampling = Sampling(_TOKENS, temperature=_TEMPERATURE)
    return [
        OpenRequest((-1, n), Request(Draw(n, _SAID, tuple(map(int, ids))), round_), sampling)
        for n, ids in enumerate(ids_PT)
    ]


def check(
    rows: Sequence[OpenRequest], host: EngineHost, model: Any, *, alarm: float, engine: str
) -> None:
    """Compares the log-probabilities of drawn `probes` with the policy's.

    `alarm` is the largest mean difference, in nats, that counts as rounding; in float32 less does.

    Raises:
        TrainingStoppedError: they differ by more.
    """
    ids_BT = torch.tensor([row.input_ids for row in rows], device=model.device)
    with torch.no_grad(), host.autocast(), answering(model, GenerationConfig()):
        logits_BTV = model(input_ids=ids_BT).logits[:, _TOKENS - 1 : -1].float()
    drawn_BT1 = ids_BT[:, _TOKENS:, None]
    logps_BTV = torch.log_softmax(logits_BTV / _TEMPERATURE, dim=-1)
    direct_BT = logps_BTV.gather(-1, drawn_BT1).squeeze(-1).cpu()
    gap_BT = (direct_BT - torch.tensor([row.logprobs for row in rows])).abs()
    exact = host.dtype is None and model.dtype == torch.float32
    most = min(alarm, _ROUNDING) if exact else alarm
    mean = float(gap_BT.mean())
    if not mean <= most:
        raise TrainingStoppedError(
            f"{engine} does not answer by the policy's weights: its log-probabilities differ by "
            f"{mean:.2g} nats on average ({float(gap_BT.max()):.2g} at most), where {most:g} may "
            'be rounding; use rollout.backend = "hf", and tell us which model it was'
        )
