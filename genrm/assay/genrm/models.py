"""The models of the service: started, each proved by requests, found by name.

vLLM's start one after another, after the others, because they measure a GPU's free memory at the
start; the others start together, and adapters after their bases.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from assay.genrm.config import ModelsConfig
from assay.genrm.engines import load_engine
from assay.genrm.engines.adapter import AdapterEngine
from assay.genrm.engines.base import (
    Capability,
    Choose,
    EngineError,
    JudgeEngine,
    ModelInfo,
    Prompt,
    PromptMessage,
    PromptPiece,
    RateDialogue,
    RateSteps,
    Request,
    Write,
)
from assay.genrm.engines.checking import check
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.replicas import Replica
from assay.kit.errors import ConfigError, StartupError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

_log = logging.getLogger(__name__)

_JUDGING: tuple[Capability, ...] = ("choose", "write", "rate")
_STEPS: tuple[Capability, ...] = ("rate-steps", "write")
_QUESTION = PromptMessage("user", (PromptPiece("Is 7 greater than 3? Answer with yes or no."),))
_ANSWER = PromptMessage("assistant", (PromptPiece("Yes."),))
_PROOFS: dict[Capability, Request] = {
    "choose": Choose(Prompt((_QUESTION,)), ("yes", "no")),
    "write": Write(Prompt((_QUESTION,)), max_tokens=2),
    "rate": RateDialogue(Prompt((_QUESTION, _ANSWER))),
    "rate-steps": RateSteps(Prompt((_QUESTION,)), ("7 is greater than 3.\n", "So: yes.")),
}


@dataclass(slots=True, eq=False)
class ServedModel:
    """One running model.

    Attributes:
        users: calls whose items it judges.
        idle: set when the last of them has ended, for a model that has been replaced.
    """

    name: str
    config: EngineConfig
    engine: JudgeEngine
    users: int = 0
    idle: asyncio.Event | None = None

    @property
    def info(self) -> ModelInfo:
        """Its engine's description."""
        return self.engine.info

    def does(self, *capabilities: Capability) -> bool:
        """Whether it answers one of these requests."""
        return not self.info.capabilities.isdisjoint(capabilities)

    @property
    def judges(self) -> bool:
        """Whether it can be a judge."""
        return self.does(*_JUDGING)

    @property
    def scores_steps(self) -> bool:
        """Whether it can score steps."""
        return self.does(*_STEPS)


class Models:
    """The models by name. Belongs to the event loop that starts them."""

    def __init__(
        self,
        config: ModelsConfig,
        make: Callable[[str, EngineConfig], JudgeEngine] = load_engine,
    ) -> None:
        self._config = config
        self._make = make
        self._served: dict[str, ServedModel] = {}
        self._replaced: set[ServedModel] = set()
        self._judge = ""
        self._steps = ""

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._served.values())

    async def start(self) -> None:
        """Loads every model and has each answer every kind of request that it claims to answer.

        Raises:
            StartupError: a model cannot be loaded or does not answer, or a default cannot do its
                work.
            ConfigError: a model's settings are wrong.
        """
        adapters = {name: one for name, one in self._config.model.items() if one.base}
        for name, config in self._config.model.items():
            if name not in adapters:
                self._served[name] = self._made(name, config)
        alone = [model for model in self if model.config.engine == "vllm"]
        await _together([_start(model) for model in self if model not in alone])
        above = {name: self._made(name, config) for name, config in adapters.items()}
        self._served = {name: above.get(name) or self._served[name] for name in self._config.model}
        await _together([_start(model) for model in above.values()])
        for model in alone:
            await _start(model)
        self._judge = self._default("default", lambda model: model.judges)
        self._steps = self._default_steps()

    def hold(self, model: ServedModel) -> None:
        """Notes a call that asks the model; `release` follows."""
        model.users += 1

    def release(self, model: ServedModel) -> None:
        """Notes the end of a call that asked the model."""
        model.users -= 1
        if not model.users and model.idle is not None:
            model.idle.set()

    def served(self, name: str) -> ServedModel:
        """The model that has the name now."""
        return self._served[name]

    async def renew(self, name: str) -> ServedModel:
        """Starts a model anew from its settings, beside the old one, and gives it the name.

        Returns:
            The old one, for `end`.

        Raises:
            StartupError: it cannot be loaded, does not answer, or is of another kind; the old one
                keeps the name.
            ConfigError: as for `start`.
        """
        old = self._served[name]
        fresh = self._made(name, old.config)
        try:
            await _start(fresh)
            if fresh.info.capabilities != old.info.capabilities:
                able = ", ".join(sorted(fresh.info.capabilities))
                raise StartupError(f"model {name}: the new weights answer {able} only")
        except BaseException:
            await fresh.engine.close()
            raise
        old.idle = asyncio.Event()
        if not old.users:
            old.idle.set()
        self._served[name] = fresh
        self._replaced.add(old)
        return old

    async def end(self, old: ServedModel) -> None:
        """Ends a model that has been replaced, when the calls that it judges have ended."""
        if old.idle is not None:
            await old.idle.wait()
        await old.engine.close()
        self._replaced.discard(old)
        _log.info("model %s: the weights %s are gone", old.name, old.info.revision)

    async def close(self) -> None:
        """Ends every engine. May be called at any time, and more than once."""
        models = [*self._served.values(), *self._replaced]
        self._served, self._replaced = {}, set()
        # Adapters first: they take leave of their bases.
        for some in (True, False):
            await _close([model for model in models if bool(model.config.base) is some])

    def _made(self, name: str, config: EngineConfig) -> ServedModel:
        if not config.base:
            return ServedModel(name, config, self._make(name, config))
        check(name, config)
        base = cast("Replica", self._served[config.base].engine)
        return ServedModel(name, config, AdapterEngine(name, config, base))

    @property
    def default_judge(self) -> str:
        """Who judges where a call names nobody; empty where no model judges."""
        return self._judge

    @property
    def default_steps(self) -> str:
        """Who scores steps where a call names nobody; empty where no model does."""
        return self._steps

    def judge(self, name: str) -> ServedModel:
        """The judge of a name, or the default one.

        Raises:
            Unjudgeable: UNKNOWN_MODEL, naming the known ones.
        """
        judges = {model.name: model for model in self if model.judges}
        return _find(name or self._judge, judges, "judges")

    def step_model(self, name: str) -> ServedModel:
        """The model of a name that scores steps, or the default one; errors as for `judge`."""
        models = {model.name: model for model in self if model.scores_steps}
        return _find(name or self._steps, models, "scores steps")

    def chooser(self, name: str) -> ServedModel:
        """The model of a name that gives probabilities; errors as for `judge`."""
        models = {model.name: model for model in self if model.does("choose")}
        return _find(name, models, "gives probabilities of words")

    def _default(self, key: str, able: Callable[[ServedModel], bool]) -> str:
        named: str = getattr(self._config, key)
        if named and not able(self._served[named]):
            raise StartupError(
                f"{key} = {named!r}: this model answers "
                f"{', '.join(sorted(self._served[named].info.capabilities))} and cannot do this"
            )
        return named or next((model.name for model in self if able(model)), "")

    def _default_steps(self) -> str:
        named = self._config.default_steps or self._config.default
        heads = [model.name for model in self if model.does("rate-steps")]
        if not self._config.default_steps and heads:
            return named if named in heads else heads[0]
        return self._default("default_steps", lambda model: model.scores_steps)


async def _close(models: Sequence[ServedModel]) -> None:
    ended = await asyncio.gather(
        *(model.engine.close() for model in models), return_exceptions=True
    )
    for model, outcome in zip(models, ended, strict=True):
        if outcome is not None:
            _log.error("model %s did not close", model.name, exc_info=outcome)


async def _together(starts: Sequence[Coroutine[Any, Any, None]]) -> None:
    tasks = [asyncio.ensure_future(start) for start in starts]
    try:
        for task in asyncio.as_completed(tasks):
            await task
    finally:
        for unfinished in tasks:
            unfinished.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _start(served: ServedModel) -> None:
    began_s = time.monotonic()
    try:
        await served.engine.start()
    except (StartupError, ConfigError) as error:
        if f"model {served.name}" in str(error):
            raise
        raise type(error)(f"model {served.name}: {error}") from error
    await _prove(served)
    info = served.info
    _log.info(
        "model %s: %s, %s, %d tokens of context, revision %s, ready in %.1f s",
        served.name,
        info.engine,
        ", ".join(sorted(info.capabilities)),
        info.context_tokens,
        info.revision,
        time.monotonic() - began_s,
    )


async def _prove(served: ServedModel) -> None:
    info = served.info
    proofs = [_PROOFS[capability] for capability in sorted(info.capabilities)]
    try:
        async with asyncio.timeout(served.config.start_timeout_s):
            await asyncio.gather(*map(served.engine.ask, proofs))
    except EngineError as error:
        raise StartupError(
            f"model {served.name} is loaded and does not answer: {error.message}"
        ) from error
    except TimeoutError as error:
        raise StartupError(
            f"model {served.name} is loaded and does not answer within "
            f"{served.config.start_timeout_s:g} s (start_timeout_s)"
        ) from error


def _find(name: str, known: Mapping[str, ServedModel], does: str) -> ServedModel:
    model = known.get(name)
    if model is not None:
        return model
    names = ", ".join(sorted(known))
    if not known:
        text = f"no model here {does}: start the server with one that does"
    else:
        text = f"no model called {name[:80]!r} {does} here; known: {names}"
    raise Unjudgeable(Reason.UNKNOWN_MODEL, text, {"known": names})
