"""`assay label-code`: labels lines of programs by what a policy can still make of them.

torch takes seconds to import, so it is imported when the policy starts and not before.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import click

from assay.clients.execution import AsyncExecutionClient
from assay.clients.rows.items import RowError
from assay.clients.rows.preferences import read
from assay.clients.services import EmbeddedServices
from assay.genrm.engines import load_engine
from assay.genrm.engines.config import EngineConfig
from assay.genrm.labelling.labeller import CompletionSettings, Labeller, UnknownLabel
from assay.genrm.labelling.tasks import Cost, LabelTask, NoProgramError, task_of
from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display, duration
from assay.kit.runs.records import JsonLines, mend, read_rows

_ENGINES = get_args(EngineConfig.__annotations__["engine"]) or ("transformers", "vllm", "openai")
_HEADER = f"{'program':>12}{'lines':>7}{'feasible':>10}{'calls':>7}{'runs':>7}"


@dataclass(slots=True)
class LabelOutcome:
    """What came of the programs of a run.

    Attributes:
        rows: labelled, in the order in which they were done.
        faults: programs without labels, by reason.
        cost: of the labelled ones.
        bound: ceil(log2(lines of code + 1)) * K completions, summed over what was searched.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    cost: Cost = field(default_factory=Cost)
    bound: int = 0


def read_tasks(
    path: Path, language: str, *, comments: bool = False, skipped: Counter[str] | None = None
) -> list[LabelTask]:
    """The programs of a file, each once.

    `language` is that of rows that do not say; `comments` as for `task_of`; `skipped` counts
    responses without a program, which are left out.

    Raises:
        ConfigError: the file cannot be read, or a row is wrong.
    """
    tasks: dict[str, LabelTask] = {}
    for number, row in read(path):
        try:
            task = task_of(row, language, comments=comments)
        except NoProgramError as reason:
            if skipped is not None:
                skipped[str(reason)] += 1
            continue
        except RowError as error:
            raise ConfigError(f"{path}:{number}: {error}") from error
        tasks.setdefault(task.key, task)
    if not tasks:
        raise ConfigError(f"{path} holds no programs")
    return list(tasks.values())


async def label_all(
    tasks: Sequence[LabelTask],
    label: Callable[[LabelTask], Awaitable[dict[str, Any]]],
    *,
    samples: int,
    at_once: int,
    keep: Callable[[dict[str, Any]], None],
    display: Display,
    done: int = 0,
) -> LabelOutcome:
    """Labels programs, `at_once` at a time, and keeps each row as soon as it is there.

    `label` raises `UnknownLabel` where there is no answer; `samples` is K; `done` programs were
    labelled before.
    """
    outcome = LabelOutcome()
    places = asyncio.Semaphore(at_once)

    async def one(task: LabelTask) -> tuple[LabelTask, dict[str, Any] | UnknownLabel]:
        async with places:
            try:
                return task, await label(task)
            except UnknownLabel as unknown:
                return task, unknown

    display.begin("programs", done + len(tasks), done)
    working = [asyncio.ensure_future(one(task)) for task in tasks]
    try:
        for number, finished in enumerate(asyncio.as_completed(working), start=done + 1):
            task, row = await finished
            if isinstance(row, UnknownLabel):
                outcome.faults[row.reason] += 1
                display.note(f"{task.key}: not labelled, {row}")
            else:
                keep(row)
                _add(outcome, task, row, samples)
                text = f"{number:>5}/{done + len(tasks):<6}{row['code_lines']:>7}"
                text += f"{row['feasible_lines']:>10}{row['calls']:>7}{row['executions']:>7}"
                display.row(_HEADER, text)
            display.advance(number)
    finally:
        for work in working:
            work.cancel()
        display.end()
    return outcome


def _add(outcome: LabelOutcome, task: LabelTask, row: dict[str, Any], samples: int) -> None:
    outcome.rows.append(row)
    outcome.cost += Cost(row["calls"], row["completions"], row["executions"], row["tokens"])
    outcome.bound += 0 if row["passed"] else task.most_calls * samples


def report(outcome: LabelOutcome, seconds: float) -> Iterable[str]:
    """What labelling came to and what it cost, in lines."""
    rows, cost = outcome.rows, outcome.cost
    labels = Counter(label for row in rows for label in row["labels"])
    passed = sum(row["passed"] for row in rows)
    yield (
        f"{len(rows)} programs labelled in {duration(seconds)}, {passed} of them passed as they "
        f"are; lines: {labels[1]} right, {labels[-1]} wrong, {labels[0]} neutral"
    )
    yield (
        f"cost: {cost.calls} prefixes asked about, {cost.completions} completions (at most "
        f"{outcome.bound}, ceil(log2(lines + 1)) * K a program), {cost.executions} programs run, "
        f"{cost.tokens} tokens written"
    )
    if outcome.faults:
        reasons = ", ".join(f"{name} x{count}" for name, count in outcome.faults.most_common())
        yield (
            f"{outcome.faults.total()} programs not labelled ({reasons}); the same command tries "
            "them again"
        )


@click.command("label-code")
@click.argument("rows", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--model", required=True, help="The policy that completes: a folder or a hub name.")
@click.option(
    "--engine", type=click.Choice(_ENGINES), default="transformers", show_default=True,
    help="What runs it.",
)  # fmt: skip
@click.option("--base-url", default="", help="With the engine openai: the server's address.")
@click.option("--sandbox", default="", help="HOST:PORT; by default one is started for the run.")
@click.option("--samples", type=click.IntRange(min=1), default=20, show_default=True, help="K.")
@click.option("--max-tokens", type=click.IntRange(min=1), default=512, show_default=True)
@click.option("--temperature", type=click.FloatRange(min=0, min_open=True), default=1.0,
              show_default=True)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--language", default="python", show_default=True, help="Of rows that do not say.")
@click.option("--at-once", type=click.IntRange(min=1), default=4, show_default=True,
              help="Programs searched at the same time.")  # fmt: skip
@click.option("--timeout-s", type=click.FloatRange(min=0, min_open=True), default=300.0,
              show_default=True, help="For one prefix's completions in the sandbox.")  # fmt: skip
@click.option("--label-comments", is_flag=True,
              help="Label comments as if they were code: without this guard a policy learns to "
              "write many.")  # fmt: skip
def label_code(rows: Path, out: Path, model: str, **options: Any) -> None:
    """Label the lines of programs, for `assay train-rm`.

    ROWS is a JSON Lines file of "prompt", "tests", and "code" or, with prose and fences,
    "response". A program is searched for its longest prefix that the policy can still complete to
    one that passes: lines up to there are right, the others wrong, comments and blank lines neutral
    (arXiv 2410.17621). OUT gets one row for each as
    soon as it is labelled; the same command goes on where it was stopped.

    \b
      assay label-code samples.jsonl labels.jsonl --model runs/dapo/model --samples 20
      assay train-rm configs/rm-steps.toml data.paths='["labels.jsonl"]' data.labels=signed
    """  # noqa: D301  # click takes the escape itself
    from assay.kit.console import make_console  # noqa: PLC0415  # only what prints needs it

    skipped: Counter[str] = Counter()
    tasks = read_tasks(
        rows, options["language"], comments=options["label_comments"], skipped=skipped
    )
    mend(out)
    known = {row["key"] for row in read_rows(out)}
    left = [task for task in tasks if task.key not in known]
    display = Display(make_console())
    if skipped:
        display.note(f"{skipped.total()} responses hold no program and are left out")
    if len(left) < len(tasks):
        display.note(f"{len(tasks) - len(left)} of {len(tasks)} programs are labelled in {out}")
    if not left:
        return
    started = time.perf_counter()
    file = JsonLines(out)
    try:
        outcome = _labelled(
            left, model, options, keep=file.write, display=display, done=len(tasks) - len(left)
        )
    except KeyboardInterrupt:
        display.note(f"interrupted; what is labelled is in {out}, the same command goes on")
        raise click.Abort from None
    finally:
        file.close()
    for line in report(outcome, time.perf_counter() - started):
        display.note(line)
    if outcome.faults:
        raise SystemExit(1)


def _labelled(
    tasks: Sequence[LabelTask],
    model: str,
    options: dict[str, Any],
    *,
    keep: Callable[[dict[str, Any]], None],
    display: Display,
    done: int,
) -> LabelOutcome:
    sampling = CompletionSettings(
        samples=options["samples"],
        max_tokens=options["max_tokens"],
        temperature=options["temperature"],
        seed=options["seed"],
    )
    config = EngineConfig(model, engine=options["engine"], base_url=options["base_url"])

    async def work(target: str) -> LabelOutcome:
        engine = load_engine("policy", config)
        try:
            await engine.start()
            async with AsyncExecutionClient(target, timeout_s=options["timeout_s"]) as client:
                return await label_all(
                    tasks,
                    Labeller(engine, client, sampling).label,
                    samples=sampling.samples,
                    at_once=options["at_once"],
                    keep=keep,
                    display=display,
                    done=done,
                )
        finally:
            await engine.close()

    own = None if options["sandbox"] else EmbeddedServices(("sandbox",))
    with own or nullcontext():
        target = options["sandbox"] or (own.addresses["sandbox"] if own else "")
        return asyncio.run(work(target))
