"""One run, from start to report: load, evaluate, train, evaluate again, compare.

before = evaluate(held-out prompts)        judged by the same services
critic: value pre-training                 where the method has it
train: rollout -> judgements -> update     checkpoints, metrics, one line per step; in turns
                                           with a verifier that learns
after  = evaluate(the same prompts)
report, curves, the trained model

Every process of a distributed run takes part; the first one writes and prints.
"""

from __future__ import annotations

import io
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from transformers import set_seed

from assay.clients import Transport
from assay.kit import tracing
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.runs import checkpoints
from assay.kit.runs.interrupt import Interrupt
from assay.kit.runs.progress import duration
from assay.kit.runs.records import read_rows, truncate_after
from assay.kit.runs.rollouts import drop_after
from assay.trainer.core.answering import evaluation_sampling, sampler
from assay.trainer.core.build import (
    Workshop,
    build_trainer,
    check_judge,
    check_processes,
    check_trl,
    encoder,
    prompt_stream,
)
from assay.trainer.core.evaluation import Evaluation, evaluate
from assay.trainer.core.hooks import Hooks, hooks_of
from assay.trainer.core.rewards import (
    EVALUATION,
    FaultWatch,
    Judge,
    Reach,
    open_judge,
    own_services,
)
from assay.trainer.core.suites import check_suites, evaluate_suite, services_of
from assay.trainer.core.trainer import PolicyTrainer
from assay.trainer.core.world import World, check_engine, join
from assay.trainer.critic.pretraining import check_floor
from assay.trainer.data.problems import Problems, load_problems
from assay.trainer.data.suites import SuiteItems, load_suites
from assay.trainer.engines.models import device_of, load_policy
from assay.trainer.engines.requirements import check_installed
from assay.trainer.errors import OutageError, TrainingStoppedError
from assay.trainer.explain.explanation import explain
from assay.trainer.recipes.hooks import AlternatingTraining, RunHooks, RunSession
from assay.trainer.recipes.value_pretraining import pretrain_critic
from assay.trainer.records import report
from assay.trainer.records.callbacks import StepRecorder, StepSpans
from assay.trainer.records.folder import RunFolder, record, recorded_data
from assay.trainer.records.progress import StepDisplay, interruptible
from assay.trainer.records.reporting import attach, check_reporters
from assay.trainer.records.saving import save_outcome
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.rollouts.ranks import AccelerateRanks
from assay.trainer.rollouts.types import Rollout
from assay.trainer.settings.config import Config
from assay.trainer.settings.registry import row_needs


def run(
    config: Config,
    folder: RunFolder,
    console: Console,
    *,
    transport: Callable[[], Transport] | None = None,
) -> dict[str, Any] | None:
    """Runs a folder's config, from its newest checkpoint where there is one.

    `transport` replaces the network to the reward service.

    Returns:
        The report (see report.compare, with `run` beside it), without the comparison when
        eval.prompts is 0; None when the run was interrupted.

    Raises:
        ConfigError: something that the settings name is missing or unusable; before any training.
        StartupError: the run's own services could not start.
        TrainingStoppedError: too many faults, the reward services away for too long, too few
            prompts to learn from, or the loss is no number.
    """
    tracing.set_up("trainer")
    world = join(
        on_cuda=device_of(config.model).type == "cuda", max_outage_s=config.reward.max_outage_s
    )
    display = StepDisplay(console if world.main else make_console(file=io.StringIO()))
    try:
        return _run(config, folder, display, world, transport)
    except OutageError as outage:
        resume = f"continue with `assay train --resume {folder.path}`"
        if not outage.interrupted:
            raise TrainingStoppedError(f"{outage}; {resume}") from outage
        display.note(f"interrupted; {resume}")
        return None


def _run(
    config: Config,
    folder: RunFolder,
    display: StepDisplay,
    world: World,
    transport: Callable[[], Transport] | None,
) -> dict[str, Any] | None:
    """See `run`; raises OutageError too, also for an interrupt in an outage."""
    hooks = hooks_of(config)
    around = [hook for hook in hooks if isinstance(hook, RunHooks)]
    _check(config, folder, world, hooks)
    for hook in around:
        hook.settle(folder)
    checkpoint = checkpoints.latest(folder.checkpoints)
    problems = _problems(config, folder, display, world)
    suites = load_suites(config.eval)
    set_seed(config.run.seed)  # adapters and heads begin at random
    policy = load_policy(config.model, display.note)
    stream = prompt_stream(config, problems.train, policy, hooks, problems.mixture)
    stream.check()
    display.note(
        f"run {folder.path}: {config.method.name}, {config.model.name} on "
        f"{policy.device.type}, {len(problems.train)} training problems, "
        f"{len(problems.eval)} held out" + (f", {world.count} processes" if world.count > 1 else "")
    )
    partner: AlternatingTraining | None = None
    ends: list[Callable[[], None]] = [display.end, *(hook.close for hook in hooks)]
    try:
        with judging(config, folder, world, transport, display.note, suites=suites) as judge:
            check_judge(config, judge, hooks)
            check_suites(config, suites, judge, policy)
            if world.main:
                record(folder, config, data=_of_data(problems))
            with interruptible(display) as stop:
                _watch_outages(judge, display, stop)
                session = RunSession(
                    config, folder, display, world, problems, policy, judge, stop, suites
                )
                recorder, trainer = _prepare(session, stream, hooks, checkpoint)
                ends[1:1] = [recorder.close, trainer.release]
                made = (hook.beside(session, trainer) for hook in around)
                partner = next(filter(None, made), None)
                resumed = checkpoint is not None
                if not all(h.prepare(session, trainer, stream, resumed=resumed) for h in around):
                    return None
                if checkpoint is None:
                    before = _evaluate(session, trainer, "before")
                    _score_prompts(session, trainer, stream)
                    if not pretrain_critic(
                        session, trainer, _workshop(session, trainer, stream).source(whole=False)
                    ):
                        return None
                else:
                    before = _stored(folder)
                interrupted, train_s = _train(
                    session, trainer, recorder, checkpoint, partner=partner
                )
            if interrupted:
                return None
            after = _evaluate(session, trainer, "after")
            for evaluation, step in ((before, 0), (after, config.run.steps)):
                if evaluation is not None:
                    recorder.report_evaluation(evaluation.row(step))
    finally:
        for end in ends:
            end()
        if partner is not None:
            partner.close()
    save_outcome(trainer, folder, policy.tokenizer, world)
    beside = {} if partner is None else {"verifier": partner.finish()}
    return _finish(session, before, after, train_s, beside) if world.main else {}


def _check(config: Config, folder: RunFolder, world: World, hooks: Sequence[Hooks]) -> None:
    """Checks before anything is loaded.

    Raises:
        ConfigError: something is missing, or does not go with so many processes.
    """
    check_processes(config, world.count, hooks)
    check_installed(config)
    check_trl(config)
    check_reporters(config.run.report_to)
    world.check_shared(folder.path)


def _problems(config: Config, folder: RunFolder, display: StepDisplay, world: World) -> Problems:
    """Reads the data, and says which they are.

    Raises:
        ConfigError: they cannot be used, or a run would go on with other rows than it began with.
    """
    needs = row_needs(config)
    problems = load_problems(config.data, eval_prompts=config.eval.prompts, needs=needs)
    origin = problems.origin
    if origin is None:
        return problems
    earlier = recorded_data(folder) if world.main else None
    if earlier and (differs := origin.differs_from(earlier)):
        raise ConfigError(f"{differs}; give these back, or begin a new run")
    display.note(f"data: {origin.line}")
    return problems


def _of_data(problems: Problems) -> dict[str, Any] | None:
    return problems.origin.to_json() if problems.origin else None


@contextmanager
def judging(
    config: Config,
    folder: RunFolder,
    world: World,
    transport: Callable[[], Transport] | None,
    say: Callable[[str], None],
    *,
    suites: Sequence[SuiteItems] = (),
) -> Iterator[Judge]:
    """The reward service; the first process starts its own services for all.

    Those of a run's own have what judges the suites beside them.
    """
    token = world.same(secrets.token_urlsafe(32))
    reach = Reach(world.host, token) if world.machines > 1 else None
    own = (
        own_services(
            config.reward, transport, reach, folder.journal, say, beside=services_of(config, suites)
        )
        if world.main
        else nullcontext("")
    )
    name = config.run.name or folder.path.name
    with (
        own as address,
        open_judge(
            config.reward, transport, target=world.same(address), reach=reach, run=name
        ) as judge,
    ):
        yield judge
        world.wait()


def _watch_outages(judge: Judge, display: StepDisplay, stop: Interrupt) -> None:
    patience = judge.patience
    patience.say, patience.aside = display.note, display.aside
    patience.interrupted = lambda: stop.requested


def _prepare(
    session: RunSession, stream: PromptStream, hooks: Sequence[Hooks], checkpoint: Path | None
) -> tuple[StepRecorder, PolicyTrainer]:
    config, folder = session.config, session.folder
    done = 0
    if checkpoint is not None:
        done = checkpoints.steps(folder.checkpoints)[-1] // config.updates_per_rollout
    if session.world.main:
        truncate_after(folder.metrics, done)
        truncate_after(folder.samples, done)
        truncate_after(folder.evals, done)
        drop_after(folder.rollouts, done)
    held: list[PolicyTrainer] = []

    def check_critic(explained: float) -> None:
        warning = check_floor(explained, config.method.critic)
        if warning:
            session.display.note(f"warning: {warning}")

    recorder = StepRecorder(
        config,
        folder,
        session.display,
        interrupt=session.stop,
        world=session.world,
        first_step=done + 1,
        evaluate=lambda step: _evaluate_within(session, held[0], recorder, step),
        held_s=lambda: session.judge.patience.held_s,
    )
    trainer = build_trainer(
        config,
        folder.checkpoints,
        session.policy,
        stream,
        session.judge,
        callbacks=[recorder, *([StepSpans(config.updates_per_rollout)] if tracing.on() else [])],
        on_broken=recorder.broken,
        check_critic=check_critic,
        say=session.display.note,
        processes=session.world.count,
        hooks=hooks,
    )
    check_engine(trainer.accelerator)
    held.append(trainer)
    session.judge.done = lambda: trainer.state.global_step // config.updates_per_rollout
    reporters = attach(
        trainer,
        config.run.report_to,
        folder=folder.path,
        run_name=config.run.name or folder.path.name,
        config=asdict(config),
        first_step=done + 1,
    )
    recorder.watch(trainer, reporters)
    return recorder, trainer


def _score_prompts(session: RunSession, trainer: PolicyTrainer, stream: PromptStream) -> None:
    """Scores problems for a selector before the first draw (Pre-PPO, MMR1's sampling).

    Raises:
        TrainingStoppedError: more went unjudged than reward.max_fault_ratio allows.
    """
    config, display = session.config, session.display
    survey = _workshop(session, trainer, stream).survey()
    count = survey.due
    if not count:
        return
    display.begin("scoring the prompts", count)
    results = survey(display.advance)
    display.end()
    stopped = FaultWatch(max_ratio=config.reward.max_fault_ratio, window=1).add(results)
    if stopped:
        raise TrainingStoppedError(f"stopped after the prompts were scored: {stopped}")
    display.note(f"scored {count} prompts for data.selection.name={config.data.selection.name}")


def _workshop(session: RunSession, trainer: PolicyTrainer, stream: PromptStream) -> Workshop:
    return Workshop(trainer, session.config, session.policy, stream, session.judge, trainer.hooks)


def _evaluate(session: RunSession, trainer: PolicyTrainer, when: str) -> Evaluation | None:
    """Evaluates and stores; None without evaluation."""
    problems, config, suites = session.problems.eval, session.config, session.suites
    if not problems and not suites:
        return None
    display, ranks = session.display, AccelerateRanks(trainer.accelerator)
    started = time.perf_counter()
    kept: list[Rollout] = []
    write, trainer.on_evaluated = trainer.on_evaluated, kept.extend
    try:
        evaluation = _held_out(session, trainer, when) if problems else Evaluation(())
        found: dict[str, Evaluation] = {}
        for hook in trainer.hooks if problems else ():
            if isinstance(hook, RunHooks):
                found |= hook.also(session, trainer)
        for items in suites:
            name = items.suite.name
            display.begin(f"{name} {when}", len(items.problems))
            found[name] = evaluate_suite(
                config,
                items,
                session.judge,
                sampler(
                    trainer, config, session.policy, evaluation_sampling(config, items.samples)
                ),
                encoder(session.policy),
                ranks=ranks,
                on_progress=display.advance,
                on_rollouts=kept.extend,
            )
            display.end()
    finally:
        trainer.on_evaluated = write
    write(kept)
    evaluation = replace(evaluation, suites=found)
    if session.world.main and when in ("before", "after"):
        session.folder.keep_evaluation(when, evaluation.to_json())
    took = duration(time.perf_counter() - started)
    if problems:
        display.note(f"{when}: {_told(evaluation)} ({took})")
    for name, suite in found.items():
        display.note(f"{when}: {_told(suite, f'items of {name}')}")
    return evaluation


def _held_out(session: RunSession, trainer: PolicyTrainer, when: str) -> Evaluation:
    """The evaluation of held-out problems, by a method's own way where it has one."""
    problems, config, display = session.problems.eval, session.config, session.display
    display.begin(f"evaluation {when}", len(problems))
    around = [hook for hook in trainer.hooks if isinstance(hook, RunHooks)]
    generator = sampler(trainer, config, session.policy, evaluation_sampling(config))
    own = (hook.evaluate(session, trainer, generator) for hook in around)
    evaluation = next(filter(None, own), None) or evaluate(
        problems,
        generator,
        lambda: session.judge.open_round(config.eval.samples, EVALUATION),
        encoder(session.policy),
        samples=config.eval.samples,
        retries=0 if session.judge.judges_groups else config.eval.retries,
        ranks=AccelerateRanks(trainer.accelerator),
        on_progress=display.advance,
        on_rollouts=trainer.on_evaluated,
    )
    display.end()
    return evaluation


def _told(evaluation: Evaluation, what_of: str = "held-out prompts") -> str:
    summary = evaluation.summary()
    what = "correct" if evaluation.samples == 1 else f"avg@{evaluation.samples}"
    accuracy = (
        "no judgement" if summary["accuracy"] is None else f"{summary['accuracy']:.1%} {what}"
    )
    faults = f", {summary['faults']} faults" if summary["faults"] else ""
    return f"{accuracy} of {summary['prompts']} {what_of}{faults}"


def _evaluate_within(
    session: RunSession, trainer: PolicyTrainer, recorder: StepRecorder, step: int
) -> None:
    """An evaluation between two steps, as a row of evals.jsonl."""
    evaluation = _evaluate(session, trainer, f"after step {step}")
    session.display.begin("training", session.config.run.steps, step)
    if evaluation is None or not session.world.main:
        return
    row = evaluation.row(step)
    with session.folder.evals.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    recorder.report_evaluation(row)


def _stored(folder: RunFolder) -> Evaluation | None:
    told = folder.kept_evaluation("before")
    return None if told is None else Evaluation.from_json(told)


def _train(
    session: RunSession,
    trainer: PolicyTrainer,
    recorder: StepRecorder,
    checkpoint: Path | None,
    *,
    partner: AlternatingTraining | None = None,
) -> tuple[bool, float]:
    """Trains to the last step, with the partner where there is one.

    Returns:
        Whether it was interrupted, and the seconds it took.
    """
    config, folder, display = session.config, session.folder, session.display
    updates = config.updates_per_rollout
    done = checkpoints.steps(folder.checkpoints)[-1] // updates if checkpoint else 0
    started = time.perf_counter()
    outage: OutageError | None = None
    try:
        if checkpoint:
            display.note(f"continuing after step {done}, from {checkpoint}")
        display.begin("training", config.run.steps, done)
        display.steps(config)
        resume_from = str(checkpoint) if checkpoint else None
        if partner is None:
            trainer.train(resume_from_checkpoint=resume_from)
        else:
            partner.train(lambda: trainer.train(resume_from_checkpoint=resume_from))
    except OutageError as error:
        if partner is not None:
            raise
        outage = error
        trainer.save_between_steps()
    finally:
        trainer.close()
        display.end()
    step = trainer.state.global_step // updates
    resume = f"continue with `assay train --resume {folder.path}`"
    ended = outage if outage and not outage.interrupted else recorder.stopped_by_faults
    if ended:
        raise TrainingStoppedError(
            f"stopped after step {step}: {ended}; a checkpoint is saved, {resume}"
        )
    interrupted = session.world.any(session.stop.requested) and step < config.run.steps
    if interrupted:
        display.note(f"interrupted after step {step}, a checkpoint is saved; {resume}")
    return interrupted, time.perf_counter() - started


def _method(config: Config) -> str:
    told = explain(config)
    lines = [told.title]
    for section in told.sections:
        lines += ["", f"{section.title}:", *(f"- {line}" for line in section.lines)]
    return "\n".join(lines)


def _finish(
    session: RunSession,
    before: Evaluation | None,
    after: Evaluation | None,
    train_s: float,
    beside: Mapping[str, Any],
) -> dict[str, Any]:
    config, folder, display = session.config, session.folder, session.display
    name = config.run.name or folder.path.name
    outcome: dict[str, Any] = {
        "run": {
            "name": name,
            "folder": str(folder.path),
            "model": config.model.name,
            "method": config.method.name,
            "ablate": list(config.ablate),
            "steps": config.run.steps,
            "samples_per_step": config.samples_per_step,
            "seed": config.run.seed,
            "train_s": round(train_s, 1),
        },
        **beside,
    }
    origin = session.problems.origin
    outcome["data"] = _of_data(session.problems)
    if session.judge.verifier is not None:
        outcome["judged_by"] = report.told_verifier(session.judge.verifier)
    from assay.trainer.records import plots  # noqa: PLC0415  # seconds and memory that only the end needs

    rows = read_rows(folder.metrics)
    subtitle = ""
    if before is not None and after is not None:
        outcome.update(report.compare(before, after))
        named = {f"items of {name}": told for name, told in outcome.get("suites", {}).items()}
        if session.problems.eval:
            line = report.change_line(outcome)
            subtitle = f"held-out accuracy {report.accuracies(outcome)}; {line}"
            named = {"held-out prompts": outcome, **named}
        for what, told in named.items():
            display.console.print()
            display.console.print(report.table(told, what))
            display.note(report.change_line(told))
    outcome["faults"] = report.faults_by_reason(rows)
    if (gold := report.hacking_gap(rows)) is not None:
        outcome["gold"] = gold
    text = report.markdown(
        outcome,
        before,
        after,
        show=config.eval.show,
        method=_method(config),
        data=origin.lines if origin else (),
    )
    report.write(folder.path, outcome, text)
    batch = f"{config.run.steps} steps of {config.samples_per_step} samples"
    title = f"{name}: {Path(config.model.name).name}, {batch}, seed {config.run.seed}"
    evaluations = read_rows(folder.evals) if folder.evals.exists() else []
    if evaluations and before is not None and after is not None:
        evaluations = [before.row(0), *evaluations, after.row(config.run.steps)]
    plots.draw(
        rows,
        folder.curves,
        title=title,
        subtitle=subtitle,
        evaluations=evaluations,
        pretraining=read_rows(folder.pretraining) if folder.pretraining.exists() else [],
    )
    display.note(f"trained for {duration(train_s)}")
    for path in (folder.curves, folder.path / "report.md", folder.model):
        if path.exists():
            display.note(f"  {path}")
    return outcome
