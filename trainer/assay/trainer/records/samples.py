"""Judged rollouts to read: rows of samples.jsonl, and a table on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from assay.kit.runs.records import Row
from assay.trainer.rollouts.types import Acted, Place, PolicyTurn, Rollout, place

_VISIBLE = {"\n": "\u23ce", "\t": "\u21e5", "\r": "\u240d"}
_STYLES = {"correct": "green", "incorrect": "red"}


def sample_rows(
    step: int,
    rollouts: Sequence[Rollout],
    *,
    shaped: Mapping[Place, float] | None = None,
    advantages: Mapping[Place, float] | None = None,
) -> Iterator[Row]:
    """Rows of samples.jsonl.

    `shaped` rewards and mean `advantages` are unknown for rollouts of dropped groups, and for those
    that another process trains on.
    """
    shaped, advantages = shaped or {}, advantages or {}
    for rollout in rollouts:
        problem, response = rollout.request.draw.problem, rollout.response
        judgement, fault = rollout.result.judgement, rollout.result.fault
        yield {
            "step": step,
            "problem": problem.id,
            "draw": rollout.request.draw.number,
            "sample": rollout.request.index,
            "hint": rollout.request.draw.hint,
            "policy_step": rollout.policy_step,
            "question": problem.question,
            "reference": problem.reference,
            "response": response.text,
            "tokens": rollout.length,
            "truncated": response.truncated,
            "verdict": judgement.verdict if judgement else None,
            "reward": judgement.reward if judgement else None,
            "shaped_reward": shaped.get(place(rollout)),
            "advantage": advantages.get(place(rollout)),
            "answer": judgement.extracted_answer if judgement else None,
            "explanation": judgement.explanation if judgement else None,
            "components": [asdict(part) for part in judgement.components] if judgement else None,
            "spans": [asdict(span) for span in judgement.spans] if judgement else None,
            "suspicions": list(judgement.suspicions) if judgement else None,
            "fault": fault.reason if fault else None,
            "fault_message": fault.message if fault else None,
            **({"turns": [turn_row(turn) for turn in rollout.turns]} if rollout.turns else {}),
            **_acted_row(rollout.acted),
        }


def _acted_row(acted: Acted | None) -> Row:
    """What an episode adds; RUN/rollouts has it whole."""
    if acted is None:
        return {}
    turns = [
        {
            "agent": turn.agent,
            "text": turn.text,
            "tokens": turn.end - turn.start,
            "truncated": turn.truncated,
            "void": turn.void,
            "calls": turn.calls,
            "refused": turn.refused,
            "reward": turn.reward,
        }
        for turn in acted.turns
    ]
    return {"environment": acted.environment, "ending": acted.ending, "turns": turns}


def turn_row(turn: PolicyTurn) -> Row:
    """A turn of a dialogue, for a row of rollouts."""
    judgement = turn.result.judgement if turn.result else None
    fault = turn.result.fault if turn.result else None
    return {
        "role": "attempt" if turn.verdict is None else "verification",
        "text": turn.text,
        "tokens": turn.end - turn.start,
        "truncated": turn.truncated,
        "says": turn.verdict,
        "verdict": judgement.verdict if judgement else None,
        "fault": fault.reason if fault else None,
    }


def telling(rows: Sequence[Row], count: int) -> list[Row]:
    """The first rows to read: by turns the best, the worst and a fault.

    Of equal responses to a problem one is shown.
    """
    different = list(
        {(row["problem"], row["response"], row["fault"]): row for row in rows}.values()
    )
    judged = [row for row in different if row["fault"] is None]
    judged.sort(key=lambda row: -row["reward"])
    faulted = [row for row in different if row["fault"] is not None]
    chosen: list[Row] = []
    for turn in range(3 * len(rows)):
        if len(chosen) == count:
            break
        source, end = ((judged, 0), (judged, -1), (faulted, 0))[turn % 3]
        if source:
            chosen.append(source.pop(end))
    return sorted(chosen, key=lambda row: (row["fault"] is not None, -(row["reward"] or 0.0)))


def samples_table(rows: Sequence[Row], *, width: int) -> Table:
    """Rows of one step for a terminal; texts in one line each, shortened in their middle."""
    grid = Table(
        title=f"step {rows[0]['step']}: {len(rows)} of its rollouts", title_justify="left",
        title_style="", header_style="dim", border_style="dim", padding=(0, 1), width=width,
    )  # fmt: skip
    advantages = any(row["advantage"] is not None for row in rows)
    room = max(24, width - (70 if advantages else 61))
    grid.add_column("question", width=room // 3, no_wrap=True)
    grid.add_column("response", width=room - room // 3, no_wrap=True)
    grid.add_column("tokens", justify="right", width=6)
    grid.add_column("answer", width=10, no_wrap=True)
    grid.add_column("verdict", width=16, no_wrap=True)
    grid.add_column("reward", justify="right", width=7)
    if advantages:
        grid.add_column("adv.", justify="right", width=6)
    for row in rows:
        verdict = row["verdict"] or f"! {row['fault']}"
        cells = [
            Text(one_line(row["question"], room // 3), style="dim"),
            Text(one_line(row["response"], room - room // 3)),
            Text(f"{row['tokens']}{'+' if row['truncated'] else ''}"),
            Text(one_line(row["answer"] or "-", 10)),
            Text(one_line(verdict, 16), style=_STYLES.get(verdict, "yellow")),
            Text(_reward(row)),
        ]
        if advantages:
            cells.append(Text("-" if row["advantage"] is None else f"{row['advantage']:+.2f}"))
        grid.add_row(*cells)
    return grid


def _reward(row: Row) -> str:
    value = row["reward"] if row["shaped_reward"] is None else row["shaped_reward"]
    return "-" if value is None else f"{value:.2f}"


def one_line(text: str, width: int) -> str:
    """Text as one line of at most `width` columns, with invisible characters shown.

    A long text keeps its beginning and end, where an answer mostly stands.
    """
    if len(text) > 4 * width:  # what is cut away is not looked at
        text = text[: 2 * width] + text[-2 * width :]
    shown = "".join(_shown(character) for character in text.strip())
    if cell_len(shown) <= width:
        return shown
    tail = (width - 1) // 2
    begin, end = _beginning(shown, width - 1 - tail), _beginning(shown[::-1], tail)[::-1]
    return f"{begin}\u2026{end}"


def _beginning(text: str, width: int) -> str:
    """As much of the text as fits; some characters are two columns wide."""
    while cell_len(text) > width:
        text = text[: len(text) - max(1, (cell_len(text) - width) // 2)]
    return text


def _shown(character: str) -> str:
    if character in _VISIBLE:
        return _VISIBLE[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def describe(row: Row) -> dict[str, Any]:
    """The row with nested parts as text, for tables of plain cells."""
    return {
        key: value if value is None or isinstance(value, str | int | float) else str(value)
        for key, value in row.items()
    }
