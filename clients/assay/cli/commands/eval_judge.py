"""`assay eval-judge FILE`: measures a judge on rows whose answer is known."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import click
from rich.console import Console

from assay.cli.commands.eval_report import print_report
from assay.cli.commands.options import ServerAccess, read_server, server_options
from assay.cli.commands.pipeline import ask_in_order, progress_bar
from assay.cli.commands.work import says_what_is_kept, tell_resume
from assay.cli.evaluation.agreement import agreement_report
from assay.cli.evaluation.benchmarks import benchmark_report
from assay.cli.evaluation.rows import AnyItem, AnyResult, BestBy, JudgeQuestion, Kind, line_of
from assay.cli.evaluation.sheet import RowReading, Sheet, check_names, make_sheet, only_rates
from assay.cli.evaluation.tallies import EvaluationTally
from assay.cli.scoring.partial import PartialFile
from assay.cli.scoring.rows import dump
from assay.clients.judging import (
    Aggregation,
    AsyncJudgeClient,
    GroupItem,
    JudgeServerInfo,
    JudgeSettings,
    ScoringMode,
    StepSettings,
)
from assay.clients.rows.preferences import read
from assay.clients.rows.published import FORMATS, RowFormat
from assay.clients.services import EmbeddedServices
from assay.kit.console import make_console
from assay.kit.errors import ConfigError

_START_S = 1800.0
_READY_S = 60.0
_CALLS_AHEAD = 2
_KINDS = ("pairs", "points", "steps", "best")
_OF_LINES = {"id", "line", "kind", "fault"}
_LINES = 2  # lines of another form are not gone on with
_SCORINGS = ("auto", "token-probability", "votes", "scalar-head", "consensus")
_AGGREGATIONS = ("min", "product", "last", "mean")


def asker(
    client: AsyncJudgeClient, kind: Kind, judging: JudgeSettings, stepping: StepSettings
) -> Callable[[list[AnyItem]], Awaitable[Sequence[AnyResult]]]:
    """The call for a chunk of items."""

    async def ask(items: list[Any]) -> Sequence[AnyResult]:
        match kind:
            case "pairs":
                return await client.judge_pairs(items, judging, on_error="raise")
            case "best" if items and isinstance(items[0], GroupItem):
                return await client.judge_groups(items, judging, on_error="raise")
            case "points" | "best":
                return await client.judge_responses(items, judging, on_error="raise")
            case "steps":
                return await client.score_steps(items, stepping, on_error="raise")

    return ask


@dataclass(frozen=True, slots=True)
class JudgeEvaluation:
    """One evaluation, once the service answers.

    `judging` is for pairs, points and several responses, `stepping` for steps; `batch` and
    `timeout_s` are of one call; `lines` are those written so far.
    """

    server: ServerAccess
    sheet: Sheet
    judging: JudgeSettings
    stepping: StepSettings
    evaluation: EvaluationTally
    output: str
    batch: int
    timeout_s: float
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def settings(self) -> JudgeSettings | StepSettings:
        """The settings for this kind."""
        return self.stepping if self.sheet.kind == "steps" else self.judging

    def identity(self, info: JudgeServerInfo) -> dict[str, Any]:
        """The origin of the lines, for resuming."""
        settings = dataclasses.asdict(self.settings)
        revisions = {f"{model.name} {model.revision}" for model in info.models}
        revisions |= {f"{model.name} {model.revision}" for model in info.process_models}
        return {
            "lines": _LINES,
            "input": self.sheet.sha256,
            "reading": dataclasses.asdict(self.sheet.reading),
            "settings": {key: value for key, value in settings.items() if key != "run"},
            "models": sorted(revisions),
            "templates": sorted(template.name for template in info.templates),
        }

    def report(self, seconds_per_item: float) -> dict[str, Any]:
        """The results, as plain data."""
        return {
            "sha256": self.sheet.sha256,
            "reading": dataclasses.asdict(self.sheet.reading),
            "kind": self.sheet.kind,
            "settings": dataclasses.asdict(self.settings),
            "max_order_gap": self.evaluation.max_order_gap,
            "threshold": self.evaluation.threshold,
            "skipped": dict(self.sheet.skipped),
            "seconds_per_item": seconds_per_item,
            **self.evaluation.numbers(),
            "benchmark": benchmark_report(self.sheet.form, self.sheet.kind, self.lines),
        }

    def count(self, line: dict[str, Any]) -> None:
        """Counts a line, new or kept."""
        self.evaluation.add(line)
        self.lines.append(line)

    def carry_out(self, info: JudgeServerInfo, console: Console) -> float:
        """Asks everything; returns the seconds for each item asked in this run.

        Raises:
            CallError: A call failed after its retries and nothing was kept.
            ConfigError: The output cannot be written, or a call failed and rows are kept.
        """
        questions, evaluation = self.sheet.questions, self.evaluation
        with ExitStack() as stack:
            show = stack.enter_context(progress_bar(console, len(questions), "judging"))
            file = None
            if self.output:
                made_from = self.identity(info)
                file = stack.enter_context(PartialFile(Path(self.output), made_from, self.count))
                tell_resume(file, len(questions), console)
                show(evaluation)

            def take(chunk: list[tuple[JudgeQuestion, Sequence[AnyResult]]]) -> None:
                for question, results in chunk:
                    line = line_of(question, results)
                    self.count(line)
                    if file is not None:
                        file.write(dump(line))
                if file is not None:
                    file.flush()
                show(evaluation)

            left = questions[evaluation.done :]
            began_s = time.monotonic()
            with says_what_is_kept(file, evaluation, len(questions)):
                asyncio.run(self._ask(left, take))
                if file is not None:
                    file.finish()
            return (time.monotonic() - began_s) / max(1, len(left))

    async def _ask(
        self,
        questions: list[JudgeQuestion],
        take: Callable[[list[tuple[JudgeQuestion, Sequence[AnyResult]]]], None],
    ) -> None:
        server = self.server
        async with AsyncJudgeClient(
            server.target, tls=server.tls, token=server.token, timeout_s=self.timeout_s
        ) as client:
            await ask_in_order(
                questions,
                lambda question: question.items,
                asker(client, self.sheet.kind, self.judging, self.stepping),
                take,
                chunk_rows=self.batch,
                chunks_ahead=_CALLS_AHEAD,
            )


def reach_judge(
    server: ServerAccess, arguments: Sequence[str], stack: ExitStack
) -> tuple[ServerAccess, JudgeServerInfo]:
    """The named service, or one with these models for as long as the stack.

    Raises:
        ConfigError: neither is named, or genrm is not installed.
        StartupError: the service did not start.
        CallError: the service does not answer.
    """
    if bool(server.target) == bool(arguments):
        raise ConfigError(
            "name one judge: --model PATH or --models FILE to start one, or --target HOST:PORT"
        )
    if arguments:
        services = EmbeddedServices(
            ["genrm"], arguments={"genrm": arguments}, start_timeout_s=_START_S
        )
        server = ServerAccess(stack.enter_context(services).address_of("genrm"), None, None)
    return server, asyncio.run(_ask_info(server))


async def _ask_info(server: ServerAccess) -> JudgeServerInfo:
    async with AsyncJudgeClient(server.target, tls=server.tls, token=server.token) as client:
        return await client.wait_ready(_READY_S)


def _arguments(model: str | None, models: str | None, templates: str | None) -> list[str]:
    arguments = []
    if model:
        arguments += ["--model", model if "=" in model else f"judge={model}"]
    if models:
        arguments += ["--models", models]
    if arguments and templates:
        arguments += ["--templates", templates]
    return arguments


@click.command("eval-judge")
@click.argument("in_file", metavar="FILE.jsonl[.gz]")
@server_options
@click.option("--model", metavar="PATH", help="Start a judge: a folder, or a hub name.")
@click.option("--models", metavar="FILE", help="Start judges: a TOML file of genrm's models.")
@click.option("--templates", metavar="DIR", help="Prompts of your own, for a judge started here.")
@click.option("--judge", default="", metavar="NAME", help="Which of the service's models.")
@click.option("--as", "kind", type=click.Choice(_KINDS), help="Default: by the first row.")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    help="The benchmark whose rows they are, as published; it is scored as there. Default: by the "
    "first row's keys.",
)
@click.option(
    "--best-by",
    type=click.Choice(["ratings", "ranking"]),
    default="ratings",
    show_default=True,
    help="Of several responses: rate each by itself, or compare each with each.",
)
@click.option(
    "--against",
    multiple=True,
    metavar="OUT.jsonl",
    help="What another judge said of these rows (-o): how far the judges agree. Repeatable.",
)
@click.option("--limit", type=click.IntRange(0), default=0, help="Rows, evenly spread; 0: all.")
@click.option("--skip-bad", is_flag=True, help="Leave out rows that cannot be asked; count them.")
@click.option(
    "--styles",
    type=click.Choice(["same", "cross"]),
    default="same",
    show_default=True,
    help="Responses in several styles: pair each style with its own, or each with each.",
)
@click.option(
    "--with-truth/--without-truth",
    default=None,
    help="Show the judge a row's right answer. Default: only for points.",
)
@click.option("--template", default="", metavar="NAME", help="The judge's prompt.")
@click.option("--scoring", type=click.Choice(_SCORINGS), default="auto", show_default=True)
@click.option("--votes", type=click.IntRange(0), default=0, help="Votes to sample; 0: default.")
@click.option("--temperature", type=click.FloatRange(0), help="Of votes and reasons.")
@click.option("--max-tokens", type=click.IntRange(0), default=0, help="Of one vote; 0: default.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sampling.")
@click.option("--keep-ends", is_flag=True, help="Cut what is over the context, not a fault.")
@click.option("--meta-critique", is_flag=True, help="Critiques are criticised before they count.")
@click.option("--run", default="", metavar="NAME", help="On whose account, of the tenant's runs.")
@click.option("--aggregation", type=click.Choice(_AGGREGATIONS), default="min", show_default=True)
@click.option(
    "--threshold",
    type=float,
    help="A point with this score or more is called right (default 0.5); a step below it is an "
    "error (default: the model's).",
)
@click.option(
    "--max-order-gap",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="A judge whose two orders differ by more abstains.",
)
@click.option("-o", "--output", default="", metavar="OUT.jsonl", help="One line for each item.")
@click.option("--json", "json_file", default="", metavar="OUT.json", help="The table; - stdout.")
@click.option("--batch", type=click.IntRange(1), default=32, show_default=True, help="Rows a call.")
@click.option("--timeout", type=float, default=3600.0, show_default=True, help="Seconds of a call.")
def eval_judge(
    *,
    in_file: str,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    model: str | None,
    models: str | None,
    templates: str | None,
    judge: str,
    kind: Kind | None,
    form: RowFormat | None,
    best_by: BestBy,
    against: tuple[str, ...],
    limit: int,
    skip_bad: bool,
    styles: Literal["same", "cross"],
    with_truth: bool | None,
    threshold: float | None,
    max_order_gap: float,
    output: str,
    json_file: str,
    batch: int,
    timeout: float,
    **how: Any,
) -> None:
    """Ask a judge about rows whose answer is known, and print how it did, by subset.

    Rows are preference pairs {prompt, chosen, rejected} (lists of styles as in RM-Bench, dialogues
    as in hh-rlhf), steps {problem, steps, labels}, points {prompt, response, label, ground_truth?},
    several responses {prompt, responses, correct}, or those of RewardBench 2, JudgeBench,
    ProcessBench, PRMBench, LLMBar and Auto-J as published. Pairs are asked in both orders; a scalar
    reward model reads each response of a pair by itself, as --as points has any judge do. All rows
    are checked before anything is asked. A fault counts for nobody; what is written with -o lets an
    interrupted run go on.
    """
    if timeout <= 0:
        raise ConfigError(f"--timeout {timeout:g} is not positive; pass seconds")
    server = read_server(target, token_file, tls_ca)
    path = Path(in_file)
    rows = list(read(path))
    reading = RowReading(kind, form, styles, with_truth, limit, skip_bad, best_by)
    sheet = make_sheet(path, rows, reading)
    others = _others(against)
    console = make_console(stderr=True)
    with ExitStack() as stack:
        server, info = reach_judge(server, _arguments(model, models, templates), stack)
        check_names(info, sheet.kind, judge, how["template"])
        if kind is None and sheet.kind == "pairs" and only_rates(info, judge):
            console.print("a scalar reward model: each response of a pair is rated by itself")
            sheet = make_sheet(path, rows, dataclasses.replace(reading, kind="points"))
        job = JudgeEvaluation(
            server,
            sheet,
            *_settings(judge, threshold, how),
            EvaluationTally(sheet.kind, max_order_gap, 0.5 if threshold is None else threshold),
            output,
            batch,
            timeout,
        )
        seconds = job.carry_out(info, console)
    report = {"file": path.name, **job.report(seconds)}
    if others:
        names = {"this judge": job.lines, **others}
        report["agreement"] = agreement_report(names, job.evaluation.threshold)
    _write_json(report, json_file)
    print_report(make_console(stderr=json_file == "-"), report)


def _others(against: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The lines of other judges, by the names of their files."""
    found: dict[str, list[dict[str, Any]]] = {}
    for name in against:
        lines = [line for _, line in read(Path(name))]
        if not lines or any(not line.keys() >= _OF_LINES for line in lines):
            raise ConfigError(
                f"{name} holds no lines of `assay eval-judge -o`; name a file that it wrote"
            )
        found[Path(name).name] = lines
    return found


def _settings(
    judge: str, threshold: float | None, how: dict[str, Any]
) -> tuple[JudgeSettings, StepSettings]:
    shared = {
        key: how[key]
        for key in (
            "template",
            "votes",
            "temperature",
            "max_tokens",
            "seed",
            "meta_critique",
            "run",
        )
    }
    judging = JudgeSettings(
        judge,
        scoring=cast("ScoringMode", how["scoring"]),
        overflow="keep-ends" if how["keep_ends"] else "refuse",
        **shared,
    )
    stepping = StepSettings(
        judge,
        aggregation=cast("Aggregation", how["aggregation"]),
        error_threshold=threshold,
        **shared,
    )
    return judging, stepping


def _write_json(report: dict[str, Any], json_file: str) -> None:
    if not json_file:
        return
    text = json.dumps(report, indent=2, ensure_ascii=False) + "\n"
    if json_file == "-":
        sys.stdout.write(text)
    else:
        Path(json_file).write_text(text, encoding="utf-8")
