"""`assay label-critiques`: critiques that agree with one another, as rows for `assay train-rm`."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from assay.cli.commands.eval_judge import reach_judge
from assay.cli.commands.options import read_server, server_options
from assay.clients.judging import AsyncJudgeClient, JudgeItem, JudgeSettings, ModelJudgement
from assay.clients.rows.items import RowError
from assay.clients.rows.points import gold_of
from assay.clients.rows.preferences import Said, prompt_of, read
from assay.clients.types import Fault
from assay.genrm.labelling.critiques import (
    Agreement,
    Written,
    agreeing,
    consensus,
    labelled,
)
from assay.kit.console import make_console
from assay.kit.errors import ConfigError
from assay.kit.runs.records import JsonLines, mend, read_rows

_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class CritiqueTask:
    """A response to criticise; `key` names it in what is written."""

    key: str
    prompt: tuple[Said, ...]
    response: str
    ground_truth: str | None = None


@dataclass(slots=True)
class CritiqueOutcome:
    """What came of a run: critiques by what became of them, and faults by reason."""

    critiques: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    none_kept: int = 0


def read_responses(path: Path, *, with_truth: bool) -> Iterator[CritiqueTask]:
    """The responses of a file.

    Raises:
        ConfigError: the file cannot be read, or a row holds no response.
    """
    for number, row in read(path):
        try:
            prompt = prompt_of(row, "prompt", "problem", "question", "query")
        except RowError as error:
            raise ConfigError(f"{path}:{number}: {error}") from error
        response = row.get("response")
        if not isinstance(response, str) or not response.strip():
            raise ConfigError(f"{path}:{number}: 'response' is missing, or blank; write a text")
        gold = gold_of(row) if with_truth else None
        yield CritiqueTask(str(row.get("id") or number), prompt, response, gold)


async def criticise(
    client: AsyncJudgeClient,
    tasks: Sequence[CritiqueTask],
    settings: JudgeSettings,
    keep: JsonLines,
    *,
    by: Agreement,
    most: int,
    written: Written = "critiques",
) -> CritiqueOutcome:
    """Asks for critiques, and keeps those that agree, or what they say, response by response."""
    outcome = CritiqueOutcome()
    for start in range(0, len(tasks), _AT_ONCE):
        some = tasks[start : start + _AT_ONCE]
        items = [
            JudgeItem(_messages(task.prompt), task.response, ground_truth=task.ground_truth)
            for task in some
        ]
        results = await client.judge_responses(items, settings, on_error="raise")
        for task, result in zip(some, results, strict=True):
            if isinstance(result, Fault):
                outcome.faults[result.reason] += 1
                continue
            found = (
                _rows(task, result, outcome, by, most)
                if written == "critiques"
                else _labels(task, result, outcome, written)
            )
            for row in found:
                keep.write(row)
    return outcome


def _rows(
    task: CritiqueTask, found: ModelJudgement, outcome: CritiqueOutcome, by: Agreement, most: int
) -> Iterator[dict[str, Any]]:
    kept, counts = agreeing([vote.text for vote in found.votes], task.response, by, most)
    outcome.critiques.update(counts)
    outcome.critiques["unreadable"] += found.unparsed_votes
    outcome.critiques["kept"] += len(kept)
    outcome.none_kept += not kept
    for critique in kept:
        row: dict[str, Any] = {
            "key": task.key,
            "prompt": _messages(task.prompt),
            "response": task.response,
            "critique": critique,
        }
        yield row if task.ground_truth is None else {**row, "ground_truth": task.ground_truth}


def _labels(
    task: CritiqueTask, found: ModelJudgement, outcome: CritiqueOutcome, written: Written
) -> Iterator[dict[str, Any]]:
    agreed, unreadable = consensus([vote.text for vote in found.votes], task.response)
    outcome.critiques["unreadable"] += unreadable + found.unparsed_votes
    outcome.critiques["read"] += len(found.votes) - unreadable
    outcome.none_kept += agreed is None
    if agreed is not None:
        row = {"key": task.key, "prompt": _messages(task.prompt)}
        yield {**row, **labelled(agreed, task.response, written), "share": agreed.share}


def _messages(said: Sequence[Said]) -> list[dict[str, str]]:
    return [{"role": one.role, "content": one.content} for one in said]


@click.command("label-critiques")
@click.argument("rows", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@server_options
@click.option("--model", metavar="PATH", help="Start a judge: a folder, or a hub name.")
@click.option("--judge", default="", metavar="NAME", help="Which of the service's models.")
@click.option("--template", default="", metavar="NAME", help="The critique's prompt.")
@click.option("--votes", type=click.IntRange(1), default=16, show_default=True, help="Critiques.")
@click.option("--temperature", type=click.FloatRange(0), default=0.7, show_default=True)
@click.option("--max-tokens", type=click.IntRange(0), default=0, help="Of one; 0: default.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--meta-critique", is_flag=True, help="Refine each critique before it counts.")
@click.option("--with-truth", is_flag=True, help="Show the judge a row's right answer.")
@click.option(
    "--agree",
    type=click.Choice(["steps", "whole"]),
    default="steps",
    show_default=True,
    help="Keep critiques whose verdicts on every step are the majority's, or on the whole alone.",
)
@click.option(
    "--write",
    "written",
    type=click.Choice(["critiques", "steps", "whole"]),
    default="critiques",
    show_default=True,
    help="Rows of agreeing critiques; of steps with the majority's labels; of whole responses.",
)
@click.option("--keep", type=click.IntRange(1), default=1, show_default=True, help="Of a response.")
@click.option("--timeout", type=float, default=3600.0, show_default=True, help="Seconds of a call.")
def label_critiques(
    rows: Path,
    out: Path,
    *,
    target: str,
    token_file: str | None,
    tls_ca: str | None,
    model: str | None,
    judge: str,
    agree: Agreement,
    written: Written,
    keep: int,
    timeout: float,
    with_truth: bool,
    **how: Any,
) -> None:
    """Write critiques that agree with one another, for `assay train-rm`, without labels.

    ROWS is a JSON Lines file of "prompt" and "response". A judge that writes criticises each
    response --votes times; those that agree with the majority are rows of OUT (SPARK, arXiv
    2512.03244), or with --write what the majority says of each step, for a PRM, or of the whole.
    The same command goes on where it was stopped, and asks again about responses of
    which nothing was kept.

    \b
      assay label-critiques samples.jsonl critiques.jsonl --target 127.0.0.1:50053
      assay train-rm configs/rm-critique.toml data.paths='["critiques.jsonl"]'
      assay label-critiques samples.jsonl steps.jsonl --model Qwen/Qwen2.5-7B --write steps
      assay train-rm configs/rm-steps.toml data.paths='["steps.jsonl"]'
    """  # noqa: D301  # click takes the escape itself
    server = read_server(target, token_file, tls_ca)
    tasks = list(read_responses(rows, with_truth=with_truth))
    mend(out)
    done = {row["key"] for row in read_rows(out)}
    left = [task for task in tasks if task.key not in done]
    console = make_console(stderr=True)
    if len(left) < len(tasks):
        console.print(f"{len(tasks) - len(left)} of {len(tasks)} responses are in {out}")
    if not left:
        return
    settings = JudgeSettings(judge, scoring="consensus", overflow="keep-ends", **how)
    file = JsonLines(out)
    try:
        with ExitStack() as stack:
            arguments = ["--model", f"judge={model}"] if model else []
            reached, _ = reach_judge(server, arguments, stack)

            async def ask() -> CritiqueOutcome:
                async with AsyncJudgeClient(
                    reached.target, tls=reached.tls, token=reached.token, timeout_s=timeout
                ) as client:
                    return await criticise(
                        client, left, settings, file, by=agree, most=keep, written=written
                    )

            outcome = asyncio.run(ask())
    finally:
        file.close()
    for name, count in (*sorted(outcome.critiques.items()), *outcome.faults.most_common()):
        console.print(f"{name}: {count}")
    console.print(f"responses of which nothing is kept: {outcome.none_kept}")
    if outcome.faults:
        raise SystemExit(1)
