"""Hooks of a method around a run, beside those of a step (core/hooks.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from assay.kit.runs.interrupt import Interrupt
from assay.trainer.core.evaluation import Evaluation
from assay.trainer.core.hooks import Hooks
from assay.trainer.core.rewards import Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.core.world import World
from assay.trainer.data.problems import Problems
from assay.trainer.data.suites import SuiteItems
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.progress import StepDisplay
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.settings.config import Config


@dataclass(slots=True)
class RunSession:
    """What the parts of a run share."""

    config: Config
    folder: RunFolder
    display: StepDisplay
    world: World
    problems: Problems
    policy: LoadedPolicy
    judge: Judge
    stop: Interrupt
    suites: Sequence[SuiteItems] = ()


class AlternatingTraining(Protocol):
    """A model that trains in turns with the policy."""

    def train(self, policy: Callable[[], Any]) -> None:
        """Trains both in turns; `policy` trains the policy to its last step."""
        ...

    def finish(self) -> Mapping[str, Any]:
        """Saves the outcome; its entries of the report."""
        ...

    def close(self) -> None:
        """Releases its resources. May be called twice."""
        ...


class RunHooks(Hooks):
    """The hooks of a method that acts outside of steps."""

    def settle(self, folder: RunFolder) -> None:
        """Prepares the folder before a checkpoint is looked for.

        Raises:
            ConfigError: what it holds cannot be continued.
        """

    def prepare(
        self, session: RunSession, trainer: PolicyTrainer, stream: PromptStream, *, resumed: bool
    ) -> bool:
        """Works with the policy as it was loaded, before it is evaluated; false when interrupted.

        The trainer's checkpoint, if there is one (`resumed`), is loaded later.
        """
        del session, trainer, stream, resumed
        return True

    def evaluate(
        self, session: RunSession, trainer: PolicyTrainer, sampler: Sampler
    ) -> Evaluation | None:
        """The method's own evaluation of the held-out problems; None for the usual one."""
        del session, trainer, sampler
        return None

    def also(self, session: RunSession, trainer: PolicyTrainer) -> Mapping[str, Evaluation]:
        """Evaluations of the held-out problems beside that one, by name, as suites have them."""
        del session, trainer
        return {}

    def beside(self, session: RunSession, trainer: PolicyTrainer) -> AlternatingTraining | None:
        """What trains in turns with the policy; None for nothing."""
        del session, trainer
        return None
