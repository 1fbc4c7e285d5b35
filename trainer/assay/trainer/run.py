"""One run, from start to report: load, evaluate, train, evaluate again, compare.

before = evaluate(held-out prompts)        greedy, judged by the same services
train: rollout -> judgements -> update     checkpoints, metrics, one line per step
after  = evaluate(the same prompts)
report, curves, the trained model
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from assay.clients.runs import checkpoints
from assay.clients.runs.interrupt import Interrupt
from assay.clients.runs.progress import duration
from assay.clients.runs.records import read_rows, truncate_after
from assay.clients.transport import Transport
from assay.trainer import plots, report
from assay.trainer.build import build_trainer
from assay.trainer.callbacks import StepRecorder
from assay.trainer.config import Config
from assay.trainer.data import Problems, load_problems
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.evaluation import Evaluation, end_token_ids, evaluate
from assay.trainer.folder import RunFolder, record
from assay.trainer.models import Policy, load_policy
from assay.trainer.progress import Display
from assay.trainer.rewards import Judge, RewardFunction, open_judge

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class Session:
    """What the parts of a run share."""

    config: Config
    folder: RunFolder
    display: Display
    problems: Problems
    policy: Policy
    judge: Judge


def run(
    config: Config,
    folder: RunFolder,
    console: Console,
    *,
    transport: Callable[[], Transport] | None = None,
) -> dict[str, Any] | None:
    """Runs, or continues, what a folder holds.

    Args:
        config: the settings.
        folder: of the run; where it holds a checkpoint, the run continues from the newest.
        console: where progress is shown.
        transport: makes what goes to the reward service in place of the network.

    Returns:
        The report (see report.compare, with `run` beside it), without the comparison when
        eval.prompts is 0; None when the run was interrupted.

    Raises:
        ConfigError: something that the settings name is not there or not usable. Raised before
            anything is trained.
        StartupError: the run's own services could not start.
        TrainingStoppedError: too many faults, or the loss is no longer a number.
    """
    display = Display(console)
    checkpoint = checkpoints.latest(folder.checkpoints)
    problems = load_problems(config.data, eval_prompts=config.eval.prompts)
    policy = load_policy(config.model, display.note)
    display.note(
        f"run {folder.path}: {config.model.name} on {policy.model.device.type}, "
        f"{len(problems.train)} training problems, "
        f"{len(problems.eval)} held out"
    )
    try:
        with open_judge(config.reward, transport) as judge:
            record(folder, config)
            session = Session(config, folder, display, problems, policy, judge)
            before = (
                _evaluate(session, "before") if checkpoint is None else _stored(folder, "before")
            )
            interrupted, train_s = _train(session, checkpoint)
            if interrupted:
                return None
            after = _evaluate(session, "after")
    finally:
        display.end()
    _save_model(session)
    return _finish(session, before, after, train_s)


def _evaluate(session: Session, when: str) -> Evaluation | None:
    """Evaluates and stores; None when the evaluation is left out."""
    problems, config = session.problems.eval, session.config
    if not problems:
        return None
    session.display.begin(f"evaluation {when}", len(problems))
    started = time.perf_counter()
    evaluation = evaluate(
        session.policy,
        session.judge,
        problems,
        max_new_tokens=config.eval.max_new_tokens or config.rollout.max_new_tokens,
        batch_size=config.eval.batch_size,
        on_progress=session.display.advance,
    )
    session.display.end()
    session.folder.evaluation(when).write_text(
        json.dumps(evaluation.to_json(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
    )
    summary = evaluation.summary()
    accuracy = (
        "no judgement" if summary["accuracy"] is None else f"{summary['accuracy']:.1%} correct"
    )
    faults = f", {summary['faults']} faults" if summary["faults"] else ""
    session.display.note(
        f"{when}: {accuracy} of {summary['judged']} held-out prompts{faults} "
        f"({duration(time.perf_counter() - started)})"
    )
    return evaluation


def _stored(folder: RunFolder, when: str) -> Evaluation | None:
    path = folder.evaluation(when)
    return (
        Evaluation.from_json(json.loads(path.read_text(encoding="utf-8")))
        if path.is_file()
        else None
    )


def _train(session: Session, checkpoint: Path | None) -> tuple[bool, float]:
    """Trains to the last step.

    Returns:
        Whether it was interrupted, and the seconds it took.
    """
    config, folder, display = session.config, session.folder, session.display
    done = checkpoints.steps(folder.checkpoints)[-1] if checkpoint else 0
    truncate_after(folder.metrics, done)
    truncate_after(folder.samples, done)
    rewards = RewardFunction(
        session.judge, session.problems.train, end_token_ids=end_token_ids(session.policy)
    )
    started = time.perf_counter()
    with Interrupt(
        lambda name: display.note(
            f"{name}: this step ends, then a checkpoint is saved; again to leave at once"
        )
    ) as stop:
        recorder = StepRecorder(
            config, folder, rewards, display, interrupt=stop, first_step=done + 1
        )
        try:
            trainer = build_trainer(
                config,
                folder,
                session.policy,
                session.problems.train,
                rewards=rewards,
                callbacks=[recorder],
            )
            recorder.watch(trainer)
            if checkpoint:
                display.note(f"continuing after step {done}, from {checkpoint}")
            display.begin("training", config.run.steps, done)
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            display.end()
            recorder.close()
    if recorder.stopped_by_faults:
        raise TrainingStoppedError(
            f"stopped after step {trainer.state.global_step}: {recorder.stopped_by_faults}; a "
            "checkpoint is saved, "
            f"continue with `assay train --resume {folder.path}`"
        )
    interrupted = stop.requested and trainer.state.global_step < config.run.steps
    if interrupted:
        display.note(
            f"interrupted after step {trainer.state.global_step}, a checkpoint is saved; "
            f"continue with `assay train --resume {folder.path}`"
        )
    return interrupted, time.perf_counter() - started


def _save_model(session: Session) -> None:
    """Saves policy and tokenizer; the folder appears by one rename."""
    target = session.folder.model
    beside = target.with_name(".model-saving")
    shutil.rmtree(beside, ignore_errors=True)
    session.policy.model.save_pretrained(beside)
    session.policy.tokenizer.save_pretrained(beside)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def _finish(
    session: Session, before: Evaluation | None, after: Evaluation | None, train_s: float
) -> dict[str, Any]:
    """Report, curves, and the table on the screen."""
    config, folder, display = session.config, session.folder, session.display
    name = config.run.name or folder.path.name
    outcome: dict[str, Any] = {
        "run": {
            "name": name,
            "folder": str(folder.path),
            "model": config.model.name,
            "steps": config.run.steps,
            "samples_per_step": config.samples_per_step,
            "seed": config.run.seed,
            "train_s": round(train_s, 1),
        }
    }
    subtitle = ""
    if before is not None and after is not None:
        outcome.update(report.compare(before, after))
        report.write(folder.path, outcome, before, after, show=config.eval.show)
        subtitle = f"held-out accuracy {report.accuracies(outcome)}; {report.change_line(outcome)}"
        display.console.print()
        display.console.print(report.table(outcome))
        display.note(report.change_line(outcome))
    batch = f"{config.run.steps} steps of {config.samples_per_step} samples"
    title = f"{name}: {Path(config.model.name).name}, {batch}, seed {config.run.seed}"
    plots.draw(read_rows(folder.metrics), folder.curves, title=title, subtitle=subtitle)
    display.note(f"trained for {duration(train_s)}")
    for path in (folder.curves, folder.path / "report.md", folder.model):
        if path.exists():
            display.note(f"  {path}")
    return outcome
