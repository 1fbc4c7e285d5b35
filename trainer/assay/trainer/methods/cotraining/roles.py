"""The verifier's run beside the generator's: training, folder, resuming.

    <run>/             the generator, as any run
    <run>/verifier/    the verifier's settings, metrics, samples, checkpoints, model

Both roles save together; a run continues from the schedule's last state with both checkpoints.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.records import read_rows, truncate_after
from assay.kit.runs.rollouts import drop_after
from assay.trainer.core.answering import rollout_sampling, sampler
from assay.trainer.core.batch import Scored
from assay.trainer.core.build import build_trainer, encoder
from assay.trainer.core.rewards import Judge
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.core.world import World
from assay.trainer.data.problems import Problem
from assay.trainer.engines.engine import Sampler
from assay.trainer.engines.models import LoadedPolicy, load_policy
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.methods.cotraining import display as displays
from assay.trainer.methods.cotraining.protocol import make_prompts
from assay.trainer.methods.cotraining.schedule import State, schedule_of
from assay.trainer.methods.cotraining.sources import Asker, Solutions, Verifications
from assay.trainer.methods.cotraining.turns import Alternation, OverError, Saves, Waits
from assay.trainer.records.callbacks import StepRecorder
from assay.trainer.records.folder import RunFolder
from assay.trainer.records.progress import StepDisplay
from assay.trainer.records.reporting import attach
from assay.trainer.records.saving import save_outcome
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.types import Group
from assay.trainer.settings import config as configs
from assay.trainer.settings.config import SHARED, Config
from assay.trainer.settings.registry import methods
from assay.trainer.settings.sections import EvalConfig

_TOLD = (
    "verifier_accuracy",
    "verifier_correct_recall",
    "verifier_wrong_recall",
    "verifier_f1",
    "verifier_form",
)


def verifier_config(config: Config) -> Config:
    """The verifier's settings: the policy's objective, without its other methods."""
    together, method = config.method.cotraining, config.method
    own: Any = {one.name: one.settings() for one in methods() if one.name not in SHARED}
    return replace(
        config,
        model=replace(config.model, name=together.model or config.model.name),
        method=replace(method, name=f"{method.name}-verifier", **own),
        optim=replace(
            config.optim,
            learning_rate=together.learning_rate,
            micro_batch=together.micro_batch,
        ),
        rollout=replace(
            config.rollout,
            prompts_per_step=together.prompts_per_step,
            group_size=together.group_size,
            max_new_tokens=together.max_new_tokens,
            temperature=together.temperature,
        ),
        eval=EvalConfig(prompts=0),
        run=replace(
            config.run,
            steps=schedule_of(config).verifier_total,
            checkpoint_every=0,
            report_to=tuple(name for name in config.run.report_to if name == "tensorboard"),
        ),
        ablate=(),
    )


def folder_of(folder: RunFolder) -> RunFolder:
    """The verifier's folder."""
    return RunFolder(folder.path / "verifier")


def settle(config: Config, folder: RunFolder) -> State:
    """The state to continue from; removes checkpoints that one role made after it.

    Raises:
        ConfigError: the verifier's checkpoint of it is damaged.
    """
    verifier = folder_of(folder)
    updates = (config.updates_per_rollout, verifier_config(config).updates_per_rollout)
    places = (folder.checkpoints, verifier.checkpoints)
    made = [
        [step // each for step in checkpoints.steps(place)]
        for place, each in zip(places, updates, strict=True)
    ]
    state = schedule_of(config).latest(*made)
    for place, each, last in zip(places, updates, (state.generator, state.verifier), strict=True):
        for step in checkpoints.steps(place):
            if step > last * each:
                shutil.rmtree(place / checkpoints.name_of(step))
    if state.verifier:
        checkpoints.latest(verifier.checkpoints)
    return state


class Partner:
    """The verifier beside a generator.

    Args:
        state: to continue from; see `settle`.
        policy: the generator.
        trainer: the generator's.
        judge: of solutions.
        display: of the generator's steps.
        world: of one process.

    Attributes:
        recorder: of the verifier's steps.

    Raises:
        ConfigError: the verifier's model is missing, or its context leaves no room.
    """

    def __init__(
        self,
        config: Config,
        folder: RunFolder,
        state: State,
        *,
        policy: LoadedPolicy,
        trainer: PolicyTrainer,
        problems: Sequence[Problem],
        judge: Judge,
        display: StepDisplay,
        world: World,
        stop: Interrupt,
    ) -> None:
        self._config = verifier_config(config)
        self._folder = folder_of(folder)
        self._state = state
        self._keep = config.run.keep_checkpoints
        self._world = world
        self._generator = trainer
        self._generator_folder = folder
        self._generator_updates = config.updates_per_rollout
        self._turns = Alternation(schedule_of(config).after(state))
        self._error: BaseException | None = None
        self._policy = load_policy(self._config.model, display.note)
        ask = Asker(
            make_prompts(config.method.cotraining, self._policy.tokenizer),
            separator=config.method.cotraining.step_separator,
            room=self._room(),
        )
        self._display = displays.VerifierDisplay(display.console)
        self._begin_folder()
        self.recorder = StepRecorder(
            self._config,
            self._folder,
            self._display,
            interrupt=stop,
            world=world,
            first_step=state.verifier + 1,
            evaluate=lambda _step: None,
        )
        self._trainer = self._built(config, policy, problems, judge, asker=ask, say=display.note)
        trainer.source = Solutions(
            trainer.source,
            self._verifier(self._trainer),
            ask,
            config.method.cotraining,
        )
        self._take_turns(config)

    def _verifier(self, trainer: PolicyTrainer) -> Sampler:
        config = self._config
        return sampler(trainer, config, self._policy, rollout_sampling(config.rollout))

    def _begin_folder(self) -> None:
        folder = self._folder
        folder.path.mkdir(exist_ok=True)
        folder.config.write_text(configs.to_toml(self._config), encoding="utf-8")
        truncate_after(folder.metrics, self._state.verifier)
        truncate_after(folder.samples, self._state.verifier)
        drop_after(folder.rollouts, self._state.verifier)

    def _room(self) -> int:
        """Most tokens of a prompt that leave room for a verification; 0 for no limit."""
        context = getattr(self._policy.model.config, "max_position_embeddings", None) or 0
        most = self._config.rollout.max_new_tokens
        if context and context <= most:
            raise ConfigError(
                f"method.cotraining.max_new_tokens = {most} leaves no room for a prompt in the "
                f"context of {context} tokens that {self._config.model.name!r} has"
            )
        return context - most if context else 0

    def _built(
        self,
        config: Config,
        policy: LoadedPolicy,
        problems: Sequence[Problem],
        judge: Judge,
        *,
        asker: Asker,
        say: Callable[[str], None],
    ) -> PolicyTrainer:
        stream = PromptStream(problems, encoder(policy), seed=config.data.seed + 1)
        made: list[Verifications] = []

        def source_of(trainer: PolicyTrainer) -> Verifications:
            made.append(
                Verifications(
                    stream,
                    sampler(self._generator, config, policy, rollout_sampling(config.rollout)),
                    lambda: judge.open_round(1),
                    self._verifier(trainer),
                    asker=asker,
                    config=config.method.cotraining,
                )
            )
            return made[0]

        def score(groups: Sequence[Group]) -> list[Scored]:
            return made[0].scored(groups)

        trainer = build_trainer(
            self._config,
            self._folder.checkpoints,
            self._policy,
            stream,
            judge,
            callbacks=[self.recorder],
            on_broken=self.recorder.broken,
            check_critic=lambda _explained: None,
            say=say,
            source_of=source_of,
            score=score,
        )
        reporters = attach(
            trainer,
            self._config.run.report_to,
            folder=self._folder.path,
            run_name=f"{config.run.name or self._generator_folder.path.name}-verifier",
            config=asdict(self._config),
            first_step=self._state.verifier + 1,
        )
        self.recorder.watch(trainer, reporters)
        return trainer

    def _take_turns(self, config: Config) -> None:
        every, warmup = config.run.checkpoint_every, config.method.cotraining.warmup_steps
        mine, other = self._trainer, self._generator
        updates = self._config.updates_per_rollout
        mine.callback_handler.callbacks.insert(0, Waits(self._turns, "verifier", updates))
        mine.add_callback(
            Saves(
                updates,
                wanted=lambda step: bool(every) and step <= warmup and step % every == 0,
                on_saved=lambda: None,
            )
        )
        updates = self._generator_updates
        other.callback_handler.callbacks.insert(0, Waits(self._turns, "generator", updates))
        other.add_callback(Saves(updates, wanted=lambda _step: False, on_saved=self._save))

    def _save(self) -> None:
        _save_once(self._trainer, self._folder.checkpoints)
        checkpoints.prune(self._folder.checkpoints, self._keep)

    def train(self, generator: Callable[[], object]) -> None:
        """Trains both, until the generator's last step or until one stops; `generator` is its loop.

        Raises:
            TrainingStoppedError: too many solutions had no judgement, or the verifier's loss is no
                number.
            Exception: what one of the loops raised.
        """
        thread = threading.Thread(target=self._learn, name="verifier", daemon=True)
        thread.start()
        self._turns.wait_here("verifier")
        stopped = False
        try:
            generator()
        except OverError:
            stopped = True
        finally:
            self._turns.leave("generator", over=True)
            thread.join()
        if self._error is not None:
            raise self._error
        if stopped:
            _save_once(self._generator, self._generator_folder.checkpoints)
        if self.recorder.stopped_by_faults:
            raise TrainingStoppedError(
                f"stopped after step {self.steps} of the verifier: "
                f"{self.recorder.stopped_by_faults}; a checkpoint is saved, continue with `assay "
                f"train --resume {self._generator_folder.path}`"
            )

    @property
    def steps(self) -> int:
        """Steps that the verifier has made."""
        return self._trainer.state.global_step // self._config.updates_per_rollout

    def _learn(self) -> None:
        """The verifier's loop, in its thread."""
        folder, done = self._folder.checkpoints, self._state.verifier
        total = self._config.run.steps
        over = True
        try:
            path = str(folder / checkpoints.name_of(done * self._config.updates_per_rollout))
            if done < total:
                self._trainer.train(resume_from_checkpoint=path if done else None)
                over = self.steps < total
            else:
                self._trainer._load_from_checkpoint(path)  # noqa: SLF001  # as train does
                over = False
        except OverError:
            pass
        except BaseException as error:  # noqa: BLE001  # raised again where both loops have ended
            self._error = error
        finally:
            self._turns.leave("verifier", over=over)

    def close(self) -> None:
        """Closes the records and the engine. May be called twice."""
        self.recorder.close()
        self._trainer.release()

    def finish(self) -> dict[str, Any]:
        """Saves the model, draws the curves; the verifier's final metrics."""
        from assay.trainer.records import plots  # noqa: PLC0415  # seconds and memory that only the end needs

        save_outcome(self._trainer, self._folder, self._policy.tokenizer, self._world)
        rows = read_rows(self._folder.metrics)
        plots.draw(rows, self._folder.curves, title="the verifier", subtitle="")
        last = rows[-max(1, len(rows) // 10) :]
        figures: dict[str, Any] = {"model": self._config.model.name, "steps": len(rows)}
        for key in _TOLD:
            values = [row[key] for row in last if row[key] is not None]
            figures[key] = sum(values) / len(values) if values else None
        self._display.note(f"{displays.outcome(figures)}: {self._folder.model}")
        return figures


def _save_once(trainer: PolicyTrainer, folder: Path) -> None:
    """A checkpoint of a waiting loop, unless it exists or the loop made no step."""
    step = trainer.state.global_step
    if step and step not in checkpoints.steps(folder):
        trainer._save_checkpoint(trainer.model, None)  # noqa: SLF001  # as its loop does
