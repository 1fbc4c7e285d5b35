"""The settings of the service; `__main__` makes them from flags and a file of models.

That file is TOML:

    default = "judge"              # who judges where a call names nobody; by default the first
    default_steps = "prm"          # who scores steps; by default the first with a step head

    [model.judge]
    path = "Qwen/Qwen2.5-7B-Instruct"
    engine = "vllm"

A path that begins with "./" or "../" is relative to the file's folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from assay.genrm.accounts import BudgetConfig, Prices
from assay.genrm.engines.config import EngineConfig
from assay.kit import limits, toml_config
from assay.kit.access import Access
from assay.kit.errors import ConfigError
from assay.kit.toml_config import STRICT

ENVIRONMENT_PREFIX = "ASSAY_GENRM"
DEFAULT_PORT = 50053
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_EXAMPLE = "such as judge=./my-model or judge=Qwen/Qwen2.5-0.5B-Instruct"


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Which models are served.

    Attributes:
        model: by name, in the order of the file.
        default: who judges where a call names nobody; empty: the first that can.
        default_steps: who scores steps; empty: the default if it has a step head, else the first
            that has one, else the first that writes.
        budget: what tenants and runs may spend.
    """

    __pydantic_config__ = STRICT

    model: dict[str, EngineConfig] = field(default_factory=dict)
    default: str = ""
    default_steps: str = ""
    budget: BudgetConfig = field(default_factory=BudgetConfig)

    def check(self, origin: str) -> ModelsConfig:
        """Checks names, defaults and budgets; returns itself.

        Raises:
            ConfigError: a model's name is malformed, a default is none of the models, or there is
                a budget and no price.
        """
        priced = [model for model in self.model.values() if prices_of(model) != Prices()]
        if self.budget.limited and not priced:
            raise ConfigError(
                f"{origin}: there is a [budget], and no model has a price: set price_prompt, "
                "price_completion or price_second of [model.NAME]"
            )
        if self.budget.hours and not self.budget.limited:
            raise ConfigError(f"{origin}: hours of [budget] need a limit: set tenant or run")
        for name in self.model:
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{origin}: {name[:80]!r} is no name for a model; use letters, digits, dots, "
                    "dashes and underscores, at most 64"
                )
        for key in ("default", "default_steps"):
            name = getattr(self, key)
            if name and name not in self.model:
                known = ", ".join(self.model) or "none"
                raise ConfigError(f"{origin}: {key} = {name[:80]!r} is none of the models: {known}")
        for name, model in self.model.items():
            if model.base:
                self._check_base(f"{origin}: model {name}: base = {model.base[:80]!r}", model.base)
        return self

    def _check_base(self, what: str, base: str) -> None:
        found = self.model.get(base)
        if found is None:
            raise ConfigError(f"{what} is none of the models: {', '.join(self.model)}")
        if found.base:
            raise ConfigError(f"{what} is an adapter itself; name the model beneath it")
        if found.engine != "transformers":
            raise ConfigError(
                f"{what} runs in {found.engine}; adapters are served over the transformers engine "
                "(a server with adapters of its own, as vLLM's --lora-modules, has them as models)"
            )
        if found.reload:
            raise ConfigError(f"{what} reloads, and its adapters are for its weights of now")


def prices_of(model: EngineConfig) -> Prices:
    """What a model's answers cost."""
    return Prices(
        model.price_prompt, model.price_cached, model.price_completion, model.price_second
    )


def read_models(path: Path) -> ModelsConfig:
    """The models of a TOML file.

    Raises:
        ConfigError: the file cannot be read, or a setting in it is wrong.
    """
    tree = toml_config.read(path, examples="configs/models.toml is one")
    config = toml_config.build(ModelsConfig, tree, origin=str(path)).check(str(path))
    placed = {name: _placed(model, path.parent) for name, model in config.model.items()}
    return replace(config, model=placed)


def _placed(model: EngineConfig, folder: Path) -> EngineConfig:
    return replace(
        model,
        path=_from(folder, model.path),
        chat_template=_from(folder, model.chat_template),
        known=_from(folder, model.known),
    )


def _from(folder: Path, path: str) -> str:
    """Links stay links, for what they lead to may change."""
    if not path.startswith(("./", "../")):
        return path
    return os.path.normpath(folder.resolve() / path)


def gather_models(file: Path | None, shortcuts: Sequence[str]) -> ModelsConfig:
    """The models of --models, then those of --model (NAME=PATH).

    Raises:
        ConfigError: there is no model, a name comes twice, or a setting is wrong.
    """
    config = ModelsConfig() if file is None else read_models(file)
    models = dict(config.model)
    for text in shortcuts:
        name, equals, path = (part.strip() for part in text.partition("="))
        if not equals or not name or not path:
            raise ConfigError(f"--model {text!r} is not of the form NAME=PATH, {_EXAMPLE}")
        if name in models:
            raise ConfigError(f"--model {text!r}: there is a model {name!r} already")
        models[name] = EngineConfig(path=path)
    if not models:
        raise ConfigError(
            f"there is no model to serve: give --model NAME=PATH, {_EXAMPLE}, or --models FILE.toml"
        )
    return replace(config, model=models).check("--model")


@dataclass(frozen=True, slots=True)
class RunnerConfig:
    """How items are judged.

    Attributes:
        models: which models are served.
        templates: folders of prompt templates, besides the shipped ones.
        queue_items: items that may wait, for each model.
        queue_mb: MiB that they may hold, for each model; at least one message.
        self_test: a model judges by a template only after it told known answers apart by it.
        least_mass: the least share of a model's probability that verdicts must hold, in [0, 1],
            whatever a template says; None: what it says.
        cache_entries: answers that each model keeps for equal requests; 0 for none.
        metric_labels: names of the callers' labels that metrics count cost by; there is "run".

    Raises:
        ConfigError: a value is out of range.
    """

    models: ModelsConfig
    templates: tuple[Path, ...] = ()
    queue_items: int = 8192
    queue_mb: int = 512
    self_test: bool = True
    least_mass: float | None = None
    cache_entries: int = 65_536
    metric_labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._require("cache-entries", self.cache_entries >= 0, "must be 0 (none) or more")
        for name in self.metric_labels:
            self._require("metric-labels", name == "run", f"has {name[:80]!r}; there is 'run'")
        self._require("queue-items", self.queue_items >= 1, "must be 1 or more")
        least_mb = limits.MAX_MESSAGE_BYTES // 2**20
        self._require("queue-mb", self.queue_mb >= least_mb, f"must be {least_mb} or more")

    @staticmethod
    def _require(flag: str, holds: bool, problem: str) -> None:
        if not holds:
            raise ConfigError(f"--{flag} {problem}")

    @property
    def max_batch_items(self) -> int:
        """Most items of one request, which the queue must be able to take at once."""
        return min(limits.MAX_BATCH_ITEMS, self.queue_items)


@dataclass(frozen=True, slots=True)
class JudgeServerConfig:
    """How the server is reached; `__main__` says what each setting means.

    TLS files are PEM; tokens are never printed. A port of 0 is any free one, and a metrics_port of
    None means no metrics. Without a reward_target callers of ScoreSelfVerification must say which
    attempts are right. The client certificate is ours, for services that ask for one.
    """

    runner: RunnerConfig
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    port_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token: str | None = field(default=None, repr=False)
    access: Access = field(default_factory=Access)
    drain_s: float = 10.0
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    reward_target: str = ""
    reward_tls_ca: Path | None = None
    reward_token: str | None = field(default=None, repr=False)
    client_cert: Path | None = None
    client_key: Path | None = None
