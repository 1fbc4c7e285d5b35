"""Runs cells in two sessions, one of which is checkpointed, rolled back and forked at random.

    python -m session_shims.copies FILE... [--limit N] [--seconds S] [--seed SEED]

FILE is as for `session_shims.replay`. The law: every cell, run anew after a rollback, in a fork or
in the session that was forked, ends as it does in the session that nobody copied: the same end,
exception, traceback, output, value and number.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from assay.clients.sessions import CellEnd, Checkpoint, Session, SessionClient
from session_shims.replay import CELL_S, sequences

_CHECKPOINT, _ROLLBACK, _FORK = 0.08, 0.12, 0.15  # cumulated shares of steps
_MOST_POINTS = 6


def main() -> int:
    """Returns 1 where a cell ended otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--limit", type=int, default=10**9, help="sequences of a file of rows")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no sequence after it")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chance = random.Random(given.seed)  # noqa: S311 - no secret
    counts: collections.Counter[str] = collections.Counter()
    began = time.monotonic()
    with SessionClient(os.environ["ASSAY_PEERS_TARGET"]) as client:
        for name, cells in sequences(given.files, given.limit):
            if time.monotonic() - began > given.seconds:
                break
            counts["sequences"] += 1
            with client.create() as straight:
                wanted = [_ended(straight, cell) for cell in cells]
            if any(ended[0] is CellEnd.WALL_TIME_LIMIT for ended in wanted):
                counts["sequences left out, for they run out of time"] += 1
                continue
            for place, found in _wander(client, cells, wanted, chance, counts):
                counts["DIFFERS"] += 1
                print(f"{name}:{place}: {cells[place]!r}\n  {found}\n  {wanted[place]}")
    for what, count in counts.most_common():
        print(f"{count:7} {what}")
    return int(counts["DIFFERS"] > 0)


def _wander(
    client: SessionClient,
    cells: list[str],
    wanted: list[tuple[Any, ...]],
    chance: random.Random,
    counts: collections.Counter[str],
) -> list[tuple[int, tuple[Any, ...]]]:
    """The cells that ended otherwise, and how."""
    wrong: list[tuple[int, tuple[Any, ...]]] = []
    points: list[tuple[Checkpoint, int]] = []
    session, place = client.create(), 0

    def run(where: Session) -> None:
        counts["cells"] += 1
        found = _ended(where, cells[place])
        if found != wanted[place]:
            wrong.append((place, found))

    for _ in range(2 * len(cells)):
        if place == len(cells):
            break
        step = chance.random()
        if step < _CHECKPOINT:
            counts["checkpoints"] += 1
            points.append((session.checkpoint(), place))
            if len(points) > _MOST_POINTS:
                points.pop(0)[0].drop()
        elif step < _ROLLBACK and points:
            counts["rollbacks"] += 1
            point, place = chance.choice(points)
            session.rollback(point)
        elif step < _FORK:
            counts["forks"] += 2
            one, other = session.fork(2)
            run(one)
            run(other)
            other.close()
            if chance.random() < 0.5:  # goes on in the fork
                session.close()
                session, points, place = one, [], place + 1
                continue
            one.close()
        run(session)
        place += 1
    session.close()
    return wrong


def _ended(session: Session, cell: str) -> tuple[Any, ...]:
    result = session.execute(cell, wall_s=CELL_S)
    value = result.value.data if result.value else {}
    return (result.end, result.error, result.stdout, result.stderr, value, result.number)


if __name__ == "__main__":
    sys.exit(main())
