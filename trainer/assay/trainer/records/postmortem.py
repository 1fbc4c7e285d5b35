"""The whole of what led to a loss that is no number, saved to inspect and repeat.

postmortem/step-N/ within the run's folder:

batch.pt        the micro-batch's tensors; torch.load(..., weights_only=True)
rollouts.jsonl  the step's rollouts with tokens, log-probabilities and judgements
metrics.json    the numbers of the step and of those before it
README.txt      the step, the loss, and which tensors hold what is no number

Of several processes each writes its own, with its number in the names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from assay.trainer.records.samples import sample_rows
from assay.trainer.rollouts.types import Rollout


def save(
    folder: Path,
    step: int,
    loss: float,
    *,
    batch: Mapping[str, torch.Tensor],
    rollouts: Sequence[Rollout],
    metrics: Sequence[Mapping[str, Any]],
    rank: int = 0,
    ranks: int = 1,
) -> str:
    """Writes the files for a failed step, from 1; `metrics` are the rows before it and its own.

    Returns:
        What happened, where it is written down, and what to do, in one line.
    """
    target = folder / "postmortem" / f"step-{step}"
    target.mkdir(parents=True, exist_ok=True)
    mark = f"-{rank}" if ranks > 1 else ""
    suspects = broken_tensors(batch)
    tensors = {name: tensor.detach().cpu().clone() for name, tensor in batch.items()}
    torch.save(tensors, target / f"batch{mark}.pt")
    with (target / f"rollouts{mark}.jsonl").open("w", encoding="utf-8") as file:
        for rollout, row in zip(rollouts, sample_rows(step, rollouts), strict=True):
            whole = {
                **row,
                "prompt_ids": list(rollout.request.draw.prompt_ids),
                "ids": list(rollout.response.ids),
                "logprobs": rollout.response.logprobs and list(rollout.response.logprobs),
            }
            file.write(json.dumps(_plain(whole), ensure_ascii=False) + "\n")
    (target / f"metrics{mark}.json").write_text(
        json.dumps(_plain(list(metrics)), indent=1) + "\n", encoding="utf-8"
    )
    (target / f"README{mark}.txt").write_text(
        _readme(step, loss, batch, suspects, mark), encoding="utf-8"
    )
    found = f"; not finite: {', '.join(suspects)}" if suspects else ""
    return (
        f"the loss of step {step} is {loss}{found}; what led to it is in {target}; lower "
        "optim.learning_rate, or set model.precision to float32, and resume from the last "
        "checkpoint or start anew"
    )


def broken_tensors(batch: Mapping[str, torch.Tensor]) -> list[str]:
    """Names of the tensors with a NaN or infinity among the tokens in the loss.

    Elsewhere, and in `rewards`, `old_logps` and `sampler_logps`, NaN is valid: a fault, these very
    weights, an unknown number.
    """
    mask_BT = batch.get("loss_mask")
    names = []
    for name, tensor in batch.items():
        if not tensor.is_floating_point():
            continue
        bad = ~tensor.isfinite()
        if name in ("rewards", "old_logps", "sampler_logps"):
            bad = tensor.isinf()
        if mask_BT is not None and bad.shape == mask_BT.shape:
            bad = bad & mask_BT.bool()
        if bool(bad.any()):
            names.append(name)
    return names


def _readme(
    step: int, loss: float, batch: Mapping[str, torch.Tensor], suspects: Sequence[str], mark: str
) -> str:
    shapes = "\n".join(
        f"  {name:20} {tuple(tensor.shape)!s:14} {str(tensor.dtype).removeprefix('torch.'):9}"
        f"{'  <- not finite' if name in suspects else ''}".rstrip()
        for name, tensor in batch.items()
    )
    said = ", ".join(suspects) or "none: the weights, or the loss itself"
    return f"""\
The loss of step {step} was {loss}, and the run stopped before it moved anything.

Tensors with NaN or infinity among the tokens in the loss: {said}.

torch.load("batch{mark}.pt", weights_only=True) gives the micro-batch:

{shapes}

rollouts{mark}.jsonl   the step's rollouts: prompt, tokens, log-probabilities, judgements
metrics{mark}.json     the steps before; look for a grad_norm, ratio_max or entropy that ran away

NaN in rewards is a fault, in old_logps "the weights that learn", in sampler_logps "not told".
"""


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
