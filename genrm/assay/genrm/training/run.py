"""One run, from start to report: load, evaluate, train, evaluate again, save.

before = figures on held-out prompts
train: batches of rows              checkpoints, metrics, a line every few steps
after  = figures on the same rows
report, and a model that `assay serve genrm` takes
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from assay.clients.preferences import PairRow, StepRow
from assay.clients.runs import checkpoints
from assay.clients.runs.interrupt import Interrupt
from assay.clients.runs.progress import duration
from assay.clients.runs.records import truncate_after
from assay.genrm.engines.prompts import PromptEncoder
from assay.genrm.templates import Templates, load_templates
from assay.genrm.training import report
from assay.genrm.training.callbacks import StepRecorder
from assay.genrm.training.config import Config
from assay.genrm.training.data import AnyRows, load_rows
from assay.genrm.training.encoding import Examples, pairwise_template
from assay.genrm.training.evaluation import Evaluation
from assay.genrm.training.folder import RunFolder, record
from assay.genrm.training.kinds import KINDS, build_trainer
from assay.genrm.training.models import Learner, load_learner
from assay.genrm.training.progress import Display


@dataclass(frozen=True, slots=True)
class Session:
    """What the parts of a run share."""

    config: Config
    folder: RunFolder
    display: Display
    learner: Learner
    train: Examples
    held_out: Examples | None


def run(
    config: Config, folder: RunFolder, console: Console, *, rows: AnyRows | None = None
) -> dict[str, Any] | None:
    """Runs, or continues, what a folder holds.

    Args:
        config: the settings.
        folder: of the run; where it holds a checkpoint, the run continues from the newest.
        console: where progress is shown.
        rows: what `load_rows` gave for these settings; None to load them.

    Returns:
        The report; None when the run was interrupted.

    Raises:
        ConfigError: something that the settings name is not there or not usable. Raised before
            anything is trained.
        DivergedError: the loss is no longer a number.
    """
    display = Display(console)
    checkpoint = checkpoints.latest(folder.checkpoints)
    rows = rows or load_rows(config)
    templates = load_templates([Path(path) for path in config.method.templates])
    texts = _texts(config, rows.train, templates)
    learner = load_learner(config, texts, display.note, tokenizer=folder.tokenizer)
    session = _session(config, folder, display, learner, rows=rows, templates=templates)
    record(folder, config)
    learner.tokenizer.save_pretrained(folder.tokenizer)
    try:
        before = _before(session, checkpoint)
        interrupted, train_s = _train(session, checkpoint)
        if interrupted:
            return None
        after = _evaluate(session, "after")
    finally:
        display.end()
    _save_model(session)
    return _finish(session, before, after, train_s)


def _texts(
    config: Config, rows: Sequence[PairRow | StepRow], templates: Templates
) -> Iterator[str]:
    """What the tokenizer of a model from scratch is made of: the rows, and the judge's words."""
    ours: tuple[str, ...] = ()
    if config.method.kind == "pairwise":
        template = pairwise_template(templates, config.method.template)
        ours = (template.system, template.user, template.prefill, *template.options)
    for row in rows:
        yield from ours
        yield from (said.content for said in row.prompt)
        yield from row.steps if isinstance(row, StepRow) else (row.chosen, row.rejected)


def _session(
    config: Config,
    folder: RunFolder,
    display: Display,
    learner: Learner,
    *,
    rows: AnyRows,
    templates: Templates,
) -> Session:
    kind = KINDS[config.method.kind]
    encoder = PromptEncoder(learner.tokenizer)
    train = kind.encode(rows.train, encoder, templates, config)
    held_out = kind.encode(rows.eval, encoder, templates, config) if rows.eval else None
    trained = sum(w.numel() for w in learner.model.parameters() if w.requires_grad)
    total = sum(w.numel() for w in learner.model.parameters())
    dropped = train.dropped + (held_out.dropped if held_out else 0)
    display.note(
        f"run {folder.path}: {config.method.kind}, {config.model.name} on "
        f"{learner.model.device.type}, {total / 1e6:.1f} M parameters, {trained / 1e6:.1f} M of "
        f"them trained"
    )
    display.note(
        f"{len(train.items)} training rows, {len(held_out.items) if held_out else 0} held out"
        + (f", {dropped} too long" if dropped else "")
        + (f", {rows.skipped} not as they should be" if rows.skipped else "")
    )
    return Session(config, folder, display, learner, train, held_out)


def _before(session: Session, checkpoint: Path | None) -> Evaluation | None:
    if not session.config.eval.before:
        return None
    if checkpoint is None:
        return _evaluate(session, "before")
    path = session.folder.evaluation("before")
    if not path.is_file():
        return None
    return Evaluation.from_json(json.loads(path.read_text(encoding="utf-8")))


def _evaluate(session: Session, when: str) -> Evaluation | None:
    """Evaluates and stores; None when nothing is held out."""
    if session.held_out is None:
        return None
    config, examples = session.config, session.held_out
    session.display.begin(f"evaluation {when}", len(examples.items))
    started = time.perf_counter()
    evaluation = KINDS[config.method.kind].evaluate(
        session.learner, examples, config.eval.batch_size, session.display.advance
    )
    session.display.end()
    session.folder.evaluation(when).write_text(
        json.dumps(evaluation.to_json(), indent=1) + "\n", encoding="utf-8"
    )
    name, figure = evaluation.main
    session.display.note(
        f"{when}: {name} {figure} on {evaluation.counts['rows']:.0f} held-out rows "
        f"({duration(time.perf_counter() - started)})"
    )
    return evaluation


def _train(session: Session, checkpoint: Path | None) -> tuple[bool, float]:
    """Trains to the last step.

    Returns:
        Whether it was interrupted, and the seconds it took.
    """
    config, folder, display = session.config, session.folder, session.display
    done = checkpoints.steps(folder.checkpoints)[-1] if checkpoint else 0
    truncate_after(folder.metrics, done)
    started = time.perf_counter()
    with Interrupt(
        lambda name: display.note(
            f"{name}: this step ends, then a checkpoint is saved; again to leave at once"
        )
    ) as stop:
        recorder = StepRecorder(config, folder, display, interrupt=stop, first_step=done + 1)
        try:
            trainer = build_trainer(config, folder, session.learner, session.train, [recorder])
            if checkpoint:
                display.note(f"continuing after step {done}, from {checkpoint}")
            display.begin("training", config.run.steps, done)
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            display.end()
            recorder.close()
    step = trainer.state.global_step
    interrupted = stop.requested and step < config.run.steps
    if interrupted:
        display.note(
            f"interrupted after step {step}, a checkpoint is saved; continue with "
            f"`assay train-rm --resume {folder.path}`"
        )
    return interrupted, time.perf_counter() - started


def _save_model(session: Session) -> None:
    """Saves model and tokenizer; the folder appears by one rename."""
    target = session.folder.model
    beside = target.with_name(".model-saving")
    shutil.rmtree(beside, ignore_errors=True)
    model, kind = session.learner.model, session.config.method.kind
    if kind == "prm":
        model.config.assay_step_layout = "step-end"  # read by the engine where it says auto
    if session.config.method.loss == "regression":
        model.config.assay_step_output = "score"  # read by the engine
    if kind == "pairwise":
        model.config.assay_template = session.train.template
    model.save_pretrained(beside)
    session.learner.tokenizer.save_pretrained(beside)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def _finish(
    session: Session, before: Evaluation | None, after: Evaluation | None, train_s: float
) -> dict[str, Any]:
    """Report, and the table on the screen."""
    config, folder, display = session.config, session.folder, session.display
    outcome = report.outcome(
        config,
        folder,
        training_rows=len(session.train.items),
        before=before,
        after=after,
        train_s=train_s,
    )
    report.write(folder.path, outcome)
    if after is not None:
        display.console.print()
        display.console.print(report.table(outcome))
    display.note(f"trained for {duration(train_s)}")
    display.note(f"  {folder.path / 'report.md'}")
    template = f" (template {session.train.template})" if session.train.template else ""
    display.note(f"  assay serve genrm --model {outcome['run']['name']}={folder.model}{template}")
    return outcome
