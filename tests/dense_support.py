"""Rewards of spans on tokens, by the code that trains."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from assay.clients import Judgement, Result, Span
from assay.trainer.core.batch import Scored
from assay.trainer.engines.types import Response
from assay.trainer.methods.dense.method import with_spans
from assay.trainer.methods.dense.settings import DenseConfig
from assay.trainer.rollouts.types import Rollout


def token_rewards(
    spans: Sequence[Span], text: str, ids: Sequence[int], tokenizer: Any, *, normalise: bool
) -> Sequence[float]:
    """Of a wrong response."""
    request: Any = SimpleNamespace()
    judgement = Judgement(0.0, "incorrect", spans=tuple(spans))
    response = Response(tuple(ids), text, None, truncated=False)
    rollout = Rollout(request, response, Result("", judgement), 0)
    found = with_spans(Scored(rollout, 0.0), tokenizer, DenseConfig(normalise=normalise))
    return found.token_rewards or [0.0] * len(ids)
