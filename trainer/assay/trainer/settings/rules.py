"""Rules that bind several settings: each says what is wrong and what to do, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.trainer.settings import capabilities, trl_options
from assay.trainer.settings.registry import (
    UNIFORM,
    engine_of,
    estimator_of,
    loss_of,
    methods,
    selection_of,
)

if TYPE_CHECKING:
    from assay.trainer.settings.config import Config


def problem(config: Config) -> str:
    """The first rule that the settings break; empty for none.

    Raises:
        ConfigError: a plug-in is not installed.
    """
    own = [method.check for method in methods()] + [loss_of(config.method.loss).check]
    own.append(engine_of(config.rollout).check)
    selection = selection_of(config.data.selection)
    if selection is not None:
        own.append(selection.check)
    for check in (_check_sizes, _check_groups, _check_data, _check_entry, _check_memory, *own):
        found = check(config)
        if found:
            return found
    return capabilities.clash(config)


def _check_sizes(config: Config) -> str:
    _rollout, optim = config.rollout, config.optim
    samples = (
        f"the {config.samples_per_step} samples of a step (rollout.prompts_per_step * "
        "rollout.group_size)"
    )
    if config.samples_per_step % optim.mini_batches:
        return f"optim.mini_batches = {optim.mini_batches} does not divide {samples}"
    evaluated = config.eval.prompts or config.eval.suites
    if config.eval.samples == 1 and config.eval.every and not evaluated:
        return "eval.every needs eval.prompts above 0, or eval.suites"
    return ""


def _check_groups(config: Config) -> str:
    estimator = estimator_of(config.method.advantage)
    if config.rollout.group_size > 1:
        return ""
    if estimator.credit == "group" and config.method.advantage.scale not in estimator.alone:
        return (
            "rollout.group_size = 1 leaves nothing to compare within a group, and "
            f'method.advantage.estimator = "{estimator.name}" does; raise rollout.group_size, or '
            'use "gae"'
        )
    for method in methods():
        if method.compares and method.is_on(config):
            return f"{method.compares} needs rollout.group_size of 2 or more: it goes by the group"
    return ""


def _check_entry(config: Config) -> str:
    reward = config.reward
    if not reward.target:
        for name in ("token_file", "tls_ca", "tls_cert", "tls_key"):
            if getattr(reward, name):
                return f"reward.{name} is for reward.target; the run's own services need none"
    if reward.tls_cert and not reward.tls_ca:
        return "reward.tls_cert needs reward.tls_ca: without it the service is spoken to in clear"
    if bool(reward.tls_cert) != bool(reward.tls_key):
        return "reward.tls_cert and reward.tls_key go together"
    return ""


def _check_memory(config: Config) -> str:
    model = config.model
    if model.lora.base != "float32" and not model.lora.rank:
        return (
            f'model.lora.base = "{model.lora.base}" is for weights beneath adapters, and '
            "model.lora.rank = 0 trains them; set model.lora.rank"
        )
    return trl_options.problem(config.trl)


def _check_mixture(config: Config) -> str:
    sources = config.data.mixture
    if not sources:
        return "data.mixture is empty; give it a table [[data.mixture]] for each source"
    tasks = [one.task for one in sources]
    for one in sources:
        if tasks.count(one.task) > 1:
            return f"data.mixture has two sources of the task {one.task!r}; name them apart"
        if bool(one.path) == bool(one.name):
            return f"data.mixture: {one.task} needs path, a file, or name, a data set of the hub"
    chosen = config.data.selection.name
    if chosen != UNIFORM and len({one.weight for one in sources}) > 1:
        return (
            f'data.selection.name = "{chosen}" chooses among all problems by itself, and would not '
            "keep the weights of data.mixture; leave the weights out, or the selection"
        )
    return ""


def _check_data(config: Config) -> str:
    if config.data.source == "mixture":
        return _check_mixture(config)
    needed = {"jsonl": ("path", config.data.path), "hub": ("name", config.data.name)}
    key, value = needed.get(config.data.source, ("task", config.data.task))
    if not value:
        return (
            f'data.{key} is missing, which data.source = "{config.data.source}" needs; '
            f"add it, or pass data.{key}=..."
        )
    if key == "name" and value.endswith((".jsonl", ".jsonl.gz", ".parquet")):
        return (
            f'data.source = "hub" and data.name = "{value}" contradict one another: a file is read '
            f"with data.path={value}, and no data.source"
        )
    return ""
