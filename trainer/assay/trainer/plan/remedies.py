"""Settings that make a plan fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from assay.trainer.plan.estimate import MARGIN, MemoryPlan
from assay.trainer.settings.config import Config


def remedies(
    config: Config, plan: MemoryPlan, again: Callable[[Config], MemoryPlan]
) -> tuple[list[str], bool]:
    """Settings to change, the cheapest first, and whether they suffice.

    `again` plans another config on the same setup.
    """
    found: dict[str, str] = {}
    for change in (_checkpoint, _smaller_rows, _batch, _offload, _engine, _eight_bit):
        for key, changed in change(config, plan):
            tried = again(changed)
            if tried.peak < plan.peak or tried.learning < plan.learning:
                found[key.partition("=")[0]] = key
                config, plan = changed, tried
            if plan.fits:
                return list(found.values()), True
    return list(found.values()), False


def _limit(plan: MemoryPlan) -> int:
    return int(plan.setup.memory * (1 - MARGIN))


def _with(config: Config, section: str, **changes: Any) -> Config:
    return replace(config, **{section: replace(getattr(config, section), **changes)})


Changes = Iterator[tuple[str, Config]]


def _checkpoint(config: Config, plan: MemoryPlan) -> Changes:
    if plan.learning > _limit(plan) and not config.model.gradient_checkpointing:
        changed = _with(config, "model", gradient_checkpointing=True)
        yield "model.gradient_checkpointing=true", changed


def _smaller_rows(config: Config, plan: MemoryPlan) -> Changes:
    over = plan.learning - _limit(plan)
    if over <= 0 or plan.micro_batch == 1:
        return
    share = plan.row("activations").learning / plan.micro_batch
    rows = max(1, plan.micro_batch - int(over / share) - 1)
    tokens = rows * plan.length
    changed = _with(config, "optim", micro_batch_tokens=tokens)
    yield f"optim.micro_batch_tokens={tokens}", changed


def _batch(config: Config, plan: MemoryPlan) -> Changes:
    over = plan.generating - _limit(plan)
    if over <= 0 or plan.rows_at_once <= 1:
        return
    drawing = plan.row("KV cache").generating + plan.row("sampling").generating
    share = drawing / plan.rows_at_once
    rows = max(1, plan.rows_at_once - int(over / share) - 1)
    for tenths in (10, 8, 5, 2):  # what is gathered does not shrink with the rows
        fewer = max(1, rows * tenths // 10)
        yield f"rollout.batch={fewer}", _with(config, "rollout", batch=fewer)


def _offload(config: Config, plan: MemoryPlan) -> Changes:
    names = [row.name for row in plan.rows if row.name in ("reference", "critic")]
    names = [name for name in names if plan.row(name).generating]
    if names:
        listed = ",".join(f'"{name}"' for name in names)
        offload = (*config.model.offload, *names)
        yield f"'model.offload=[{listed}]'", _with(config, "model", offload=offload)


def _engine(config: Config, plan: MemoryPlan) -> Changes:
    vllm = config.rollout.vllm
    if any(row.name == "vLLM" and row.learning for row in plan.rows) and not vllm.sleep:
        changed = _with(config, "rollout", vllm=replace(vllm, sleep=1))
        yield "rollout.vllm.sleep=1", changed


def _eight_bit(config: Config, plan: MemoryPlan) -> Changes:
    if config.optim.optimizer == "adamw" and plan.setup.device == "cuda":
        yield "optim.optimizer=adamw-8bit", _with(config, "optim", optimizer="adamw-8bit")
