"""One run, from start to report: load, evaluate, train, evaluate again, save.

before = figures on held-out prompts
train: batches of rows              checkpoints, metrics, a line every few steps
after  = figures on the same rows
report, and a model that `assay serve genrm` takes

Every process of a distributed run takes part; the first one writes and prints.
"""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accelerate.utils import DistributedType
from rich.console import Console

from assay.clients.judging.rendering import (
    SCORE,
    STEP_END,
    STEP_LAYOUT,
    STEP_OUTPUT,
    TEMPLATE,
    Renderer,
    open_renderer,
)
from assay.clients.rows.points import CritiqueRow, PointRow
from assay.clients.rows.preferences import PairRow, StepRow
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.kit.runs.folders import publish
from assay.kit.runs.progress import duration
from assay.kit.runs.records import truncate_after
from assay.trainer.core.world import World, join
from assay.trainer.engines.models import Loaded, device_of
from assay.trainer.recipes.reward_model import report
from assay.trainer.recipes.reward_model.callbacks import COLUMNS, LossRecorder
from assay.trainer.recipes.reward_model.config import CLASSES, RUNS, RmConfig
from assay.trainer.recipes.reward_model.data import AnyRows, against, described, load_rows
from assay.trainer.recipes.reward_model.encoding import Examples
from assay.trainer.recipes.reward_model.evaluation import RmEvaluation
from assay.trainer.recipes.reward_model.kinds import KINDS, build_trainer
from assay.trainer.recipes.reward_model.models import load_learner, merged
from assay.trainer.records.folder import RunFolder, record, recorded_data
from assay.trainer.records.progress import StepDisplay, fitting, interruptible
from assay.trainer.records.report import write
from assay.trainer.records.reporting import attach, check_reporters

AnyRow = PairRow | PointRow | CritiqueRow | StepRow


@dataclass(frozen=True, slots=True)
class _Session:
    config: RmConfig
    folder: RunFolder
    display: StepDisplay
    world: World
    learner: Loaded
    train: Examples
    held_out: Examples | None


def run(
    config: RmConfig, folder: RunFolder, console: Console, *, rows: AnyRows | None = None
) -> dict[str, Any] | None:
    """Runs a folder's config, from its newest checkpoint where there is one.

    Returns:
        The report, empty on all processes but the first; None when the run was interrupted.

    Raises:
        ConfigError: something that the settings name is missing or unusable; before any training.
        TrainingStoppedError: the loss is no number.
    """
    world = join(on_cuda=device_of(config.model).type == "cuda")
    check_processes(config, world.count)
    check_reporters(config.run.report_to)
    display = StepDisplay(console if world.main else make_console(file=io.StringIO()))
    checkpoint = checkpoints.latest(folder.checkpoints)
    rows = rows or load_rows(config)
    data = described(config, rows)
    against(recorded_data(folder) if checkpoint else None, data)
    renderer = open_renderer(config.method.template, [Path(p) for p in config.method.templates])
    texts = _texts(config, rows.train, renderer)
    learner = load_learner(config, texts, display.note, tokenizer=folder.tokenizer)
    encode = KINDS[config.method.kind].encode
    train = encode(rows.train, renderer, learner.tokenizer, config)
    held_out = encode(rows.eval, renderer, learner.tokenizer, config) if rows.eval else None
    session = _Session(config, folder, display, world, learner, train, held_out)
    _introduce(session, data)
    world.wait()  # or one reads the tokenizer that another writes
    if world.main:
        record(folder, config, data=data)
        learner.tokenizer.save_pretrained(folder.tokenizer)
    try:
        before = _before(session, checkpoint)
        interrupted, train_s = _train(session, checkpoint)
        if interrupted:
            return None
        after = _evaluate(session, "after")
    finally:
        display.end()
    if not world.main:
        return {}
    _save_model(session)
    return _finish(session, before, after, train_s)


def check_processes(config: RmConfig, processes: int) -> None:
    """Raises ConfigError where a step cannot be divided among so many processes."""
    if config.optim.batch % (config.micro_batch(processes) * processes):
        raise ConfigError(
            f"optim.batch = {config.optim.batch} cannot be dealt to {processes} processes"
            + (f" in parts of {config.optim.micro_batch}" if config.optim.micro_batch else "")
            + "; make it a multiple"
        )


def _texts(config: RmConfig, rows: Sequence[AnyRow], renderer: Renderer) -> Iterator[str]:
    """Text for the tokenizer of a model from scratch: the rows, and the judge's words."""
    kind = config.method.kind
    ours = renderer.words(kind) if kind in ("pairwise", "pointwise", "critique") else ()
    for row in rows:
        yield from ours
        yield from (said.content for said in row.prompt)
        match row:
            case StepRow():
                yield from row.steps
            case PairRow():
                yield from (row.chosen, row.rejected)
            case PointRow():
                yield from (row.response, row.ground_truth or "")
            case CritiqueRow():
                yield from (row.response, row.critique)


def _introduce(session: _Session, data: Mapping[str, Any]) -> None:
    config, train, held_out = session.config, session.train, session.held_out
    weights = list(session.learner.model.parameters())
    total = sum(w.numel() for w in weights) / 1e6
    trained = sum(w.numel() for w in weights if w.requires_grad) / 1e6
    dropped = train.dropped + (held_out.dropped if held_out else 0)
    unread = train.unreadable + (held_out.unreadable if held_out else 0)
    session.display.note(
        f"run {session.folder.path}: {config.method.kind}, {config.model.name} on "
        f"{session.learner.model.device.type}, {total:.1f} M parameters, {trained:.1f} M of them "
        "trained" + (f", {session.world.count} processes" if session.world.count > 1 else "")
    )
    session.display.note(f"data: {data['source']} {data['name']}, {data['digest'][:19]}")
    skipped = data["skipped"]
    session.display.note(
        f"{len(train.items)} training rows, {len(held_out.items) if held_out else 0} held out"
        + (f", {dropped} too long" if dropped else "")
        + (f", {skipped} not as they should be" if skipped else "")
        + (f", {unread} critiques that cannot be read" if unread else "")
    )
    if data["left_out"]:
        counts = ", ".join(f"{count} {rule}" for rule, count in data["left_out"].items())
        session.display.note(f"left out by data.clean: {counts}")


def _before(session: _Session, checkpoint: Path | None) -> RmEvaluation | None:
    if not session.config.eval.before:
        return None
    if checkpoint is None:
        return _evaluate(session, "before")
    saved = session.folder.kept_evaluation("before")
    return None if saved is None else RmEvaluation.from_json(saved)


def _evaluate(session: _Session, when: str) -> RmEvaluation | None:
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
    if session.world.main:
        session.folder.keep_evaluation(when, evaluation.to_json())
    name, figure = evaluation.main
    session.display.note(
        f"{when}: {name} {figure} on {evaluation.counts['rows']:.0f} held-out rows "
        f"({duration(time.perf_counter() - started)})"
    )
    return evaluation


def _train(session: _Session, checkpoint: Path | None) -> tuple[bool, float]:
    """Trains to the last step; whether it was interrupted, and the seconds it took."""
    config, folder, display = session.config, session.folder, session.display
    world = session.world
    done = checkpoints.steps(folder.checkpoints)[-1] if checkpoint else 0
    if world.main:
        truncate_after(folder.metrics, done)
    started = time.perf_counter()
    with interruptible(display) as stop:
        recorder = LossRecorder(
            config.run, folder, display, interrupt=stop, world=world, first_step=done + 1
        )
        try:
            trainer = build_trainer(
                config, folder, session.learner, session.train, [recorder], processes=world.count
            )
            check_whole(trainer.accelerator.distributed_type)
            recorder.reporters = attach(
                trainer,
                config.run.report_to,
                folder=folder.path,
                run_name=config.run.name or folder.path.name,
                config=asdict(config),
                first_step=done + 1,
            )
            if checkpoint:
                display.note(f"continuing after step {done}, from {checkpoint}")
            display.begin("training", config.run.steps, done)
            display.show(fitting(COLUMNS, display.width))
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        finally:
            display.end()
            recorder.close()
    step = trainer.state.global_step
    interrupted = world.any(stop.requested) and step < config.run.steps
    if interrupted:
        display.note(
            f"interrupted after step {step}, a checkpoint is saved; continue with "
            f"`assay {RUNS.command} --resume {folder.path}`"
        )
    return interrupted, time.perf_counter() - started


def check_whole(kind: DistributedType) -> None:
    """Refuses sharded weights, which evaluations and saving do not support.

    Raises:
        ConfigError: the launcher's settings shard them.
    """
    if kind in (DistributedType.FSDP, DistributedType.DEEPSPEED):
        raise ConfigError(
            f"`assay {RUNS.command}` keeps all weights on each process, and accelerate's config "
            f"asks for {kind.value}; launch with configs/accelerate/ddp.yaml"
        )


def _save_model(session: _Session) -> None:
    """Saves model and tokenizer, and adapters beside; each folder appears by one rename."""
    target = session.folder.model
    beside = target.with_name(".model-saving")
    shutil.rmtree(beside, ignore_errors=True)
    kind = session.config.method.kind
    if session.config.model.lora.rank:
        adapter = target.with_name(".adapter-saving")
        shutil.rmtree(adapter, ignore_errors=True)
        session.learner.model.save_pretrained(adapter)
        publish(adapter, session.folder.adapter)
    model = merged(session.learner.model)
    if kind == "prm":
        setattr(model.config, STEP_LAYOUT, STEP_END)
    if session.config.method.loss in ("regression", *CLASSES):
        setattr(model.config, STEP_OUTPUT, SCORE)
    if session.train.template:
        setattr(model.config, TEMPLATE, session.train.template)
    model.save_pretrained(beside)
    session.learner.tokenizer.save_pretrained(beside)
    publish(beside, target)


def _finish(
    session: _Session, before: RmEvaluation | None, after: RmEvaluation | None, train_s: float
) -> dict[str, Any]:
    config, folder, display = session.config, session.folder, session.display
    outcome = report.outcome(
        config,
        folder,
        training_rows=len(session.train.items),
        before=before,
        after=after,
        train_s=train_s,
    )
    write(folder.path, outcome, report.markdown(outcome))
    report.draw_curves(folder, *report.heading(outcome, after))
    if after is not None:
        display.console.print()
        display.console.print(report.table(outcome))
    display.note(f"trained for {duration(train_s)}")
    for path in (folder.curves, folder.path / "report.md"):
        display.note(f"  {path}")
    template = f" (template {session.train.template})" if session.train.template else ""
    display.note(f"  assay serve genrm --model {outcome['run']['name']}={folder.model}{template}")
    return outcome
