"""A composition in words, for `assay train --explain`.

Pure: settings in, text out. The lines come from the settings and the table of parts that train.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.trainer.explain.presets import departures
from assay.trainer.settings.method import SECTIONS, Earned
from assay.trainer.settings.part import Part
from assay.trainer.settings.registry import estimator_of, methods_on, part_names, parts_on
from assay.trainer.settings.words import begun, count

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


@dataclass(frozen=True, slots=True)
class Section:
    """Some lines under a heading."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A composition in words."""

    title: str  # the method's name and its scale
    sections: tuple[Section, ...]  # in the order of a step
    on: tuple[Part, ...]  # the parts, in the order of the table
    off: tuple[Part, ...]  # the parts that `ablate` switched off
    # parts that the method of this name has and these settings lack, besides those
    missing: tuple[str, ...]
    added: tuple[str, ...]  # parts that these settings add to it


def explain(config: Config, *, data: Sequence[str] = ()) -> Explanation:
    """Describes what settings compose; `data` are lines about the rows, for a first section."""
    missing, added = departures(config) or ((), ())
    sections = ((title, tuple(_lines(title, config))) for title in SECTIONS)
    return Explanation(
        title=f"{config.method.name}: {config.model.name}, {config.run.steps} steps of "
        f"{config.samples_per_step} samples",
        sections=tuple(
            Section(title, lines) for title, lines in (("Data", tuple(data)), *sections) if lines
        ),
        on=parts_on(config),
        off=tuple(part_names()[name] for name in config.ablate),
        missing=tuple(name for name in missing if name not in config.ablate),
        added=added,
    )


def _lines(title: str, config: Config) -> list[str]:
    core: dict[str, list[tuple[int, Callable[[Config], list[str]]]]] = {
        "Sampling": [(0, _sampling)],
        "Reward": [(0, _reward), (90, _faults)],
        "Advantage": [(0, estimator_of(config.method.advantage).lines)],
        "Optimiser": [(0, _optimiser)],
    }
    on = methods_on(config)
    told = [(one.rank, one.write) for m in on for one in m.lines if one.section == title]
    writers = sorted([*core.get(title, []), *told], key=lambda one: one[0])
    return [line for _, write in writers for line in write(config)]


def _earned(config: Config) -> Earned | None:
    """R as the methods make it; None where a method's own lines describe it."""
    earned: Earned | None = Earned()
    for method in methods_on(config):
        earned = earned and method.earns(config, earned)
    return earned


def _faults(config: Config) -> list[str]:
    told = "a response without a judgement (a fault) has no reward and leaves the loss"
    return [told] if _earned(config) else []


def _sampling(config: Config) -> list[str]:
    rollout, chosen = config.rollout, config.data.selection
    asked = f"{count(rollout.prompts_per_step, 'prompt')} x {count(rollout.group_size, 'sample')}"
    made = count(config.samples_per_step, "response")
    top_k = rollout.top_k or "off"
    lines = [
        f"{asked} = {made} a step, of at most {count(rollout.max_new_tokens, 'token')}",
        f"temperature {rollout.temperature:g}, top-p {rollout.top_p:g}, top-k {top_k}; back end "
        + rollout.backend,
    ]
    if chosen.name != "uniform":
        part = part_names()[chosen.name]
        lines.append(f"which problems ({part.name}): {begun(part.what)}")
    return lines


def _reward(config: Config) -> list[str]:
    earned = _earned(config)
    if earned is None:
        return []
    return [
        f"R = {' + '.join(earned.terms)}",
        f"{earned.judged} the verifier {config.reward.verifier}",
    ]


def _optimiser(config: Config) -> list[str]:
    optim = config.optim
    size = config.samples_per_step // optim.mini_batches
    warm_up = (
        f" after {count(optim.warmup_steps, 'optimizer step')} of warm-up"
        if optim.warmup_steps
        else ""
    )
    clip = f", gradient norm at most {optim.max_grad_norm:g}" if optim.max_grad_norm else ""
    lora = config.model.lora
    trained = f"low-rank adapters of rank {lora.rank}" if lora.rank else "all weights"
    passes = count(optim.epochs, "pass", "passes")
    batches = count(optim.mini_batches, "mini-batch", "mini-batches")
    updates = count(config.updates_per_rollout, "optimizer step")
    in_all = count(config.updates_per_rollout * config.run.steps, "optimizer step")
    kind = {"adamw": "AdamW"}.get(optim.optimizer, f"AdamW ({optim.optimizer})")
    pace = f"learning rate {optim.learning_rate:g}, {optim.schedule}{warm_up}"
    return [
        f"{kind} on {trained}: {pace}, weight decay {optim.weight_decay:g}{clip}",
        f"each rollout: {passes} over {batches} of {count(size, 'response')} = {updates}",
        f"{in_all} in all",
        *_machine(config),
    ]


def _machine(config: Config) -> list[str]:
    model = config.model
    frozen = "frozen weights in bfloat16 beneath the adapters"
    told = [
        frozen if model.lora.base == "bfloat16" else "",
        "activation checkpointing" if model.gradient_checkpointing else "",
        f"attention {model.attention}" if model.attention else "",
        "torch.compile" if model.compile else "",
        "kernels of liger" if model.liger else "",
    ]
    lines = [", ".join(filter(None, told))]
    own = config.method.has_critic and config.method.critic.sharing == "separate"
    reference = bool(config.method.loss.kl_most) and not model.lora.rank
    there = {"critic": own, "reference": reference}
    if waiting := [name for name in model.offload if there[name]]:
        lines.append(f"{' and '.join(waiting)} in the host's memory while not used")
    if config.trl:
        given = ", ".join(f"{name} = {value}" for name, value in config.trl.items())
        lines.append(f"of TRL: {given}")
    return [line for line in lines if line]
