"""Mutation: mutants of the right program that a test suite lets pass. Pure.

A mutant is known to be wrong where it differs from the right program on an input that the right one
takes; both are run in the sandbox, before the tests are asked. That input is the killing test.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from assay.audit.engines.programs import functions_of
from assay.audit.mutants import (
    comparison,
    inputs_of,
    more_inputs,
    more_stdin,
    mutants,
    stdin_of,
)
from assay.audit.probes import Asking, Probe, ProbeClass, Subject

_MOST_MUTANTS = 12
_AT_ONCE = 8
CLASSES = (
    ProbeClass(
        "mutant", "refuse", "hole",
        "a program that differs from the right one, and passes the tests",
        "add the test that stands beside it",
    ),
)  # fmt: skip


class Mutation:
    """Asks about mutants of the programs in the column `right`."""

    name = "mutation"
    classes: Sequence[ProbeClass] = CLASSES

    def ask(self, subject: Subject) -> Asking:
        """Asks some rows at a time; rows without a program have none."""
        rows = [
            place
            for place, row in enumerate(subject.rows)
            if row.tests is not None and row.right and subject.execute is not None
        ]
        for start in range(0, len(rows), _AT_ONCE):
            probes = [*_proven(subject, rows[start : start + _AT_ONCE])]
            subject.draws(self.name, start).shuffle(probes)
            if probes:
                yield probes


def _proven(subject: Subject, rows: Sequence[int]) -> Iterator[Probe]:
    """The mutants of some rows that are known to be wrong."""
    assert subject.execute is not None  # noqa: S101 - asked before
    made = [(row, *one) for row in rows if (one := _prepared(subject, row)) is not None]
    said = subject.execute([program for *_, program in made])
    for (row, name, changed, _), text in zip(made, said, strict=True):
        lines = [json.loads(line) for line in (text or "").splitlines()]
        for (says, source), differs in zip(changed, lines[1:], strict=False):
            if differs is not None:
                yield Probe(row, "mutant", source, "refuse", _killing(name, says, differs))


def _killing(name: str, says: str, differs: dict[str, Any]) -> str:
    if not name:
        (given,), want, got = differs["args"], differs["want"], differs["got"]
        return f"{says}; add the input {given!r}, of which {want} is printed, where it gives {got}"
    args = ", ".join(map(repr, differs["args"]))
    want, got = differs["want"], differs["got"]
    return f"{says}; add: assert {name}({args}) == {want}, where it gives {got}"


def _prepared(subject: Subject, row: int) -> tuple[str, list[tuple[str, str]], str] | None:
    """The function's name (none of a whole program), the mutants, and what compares them."""
    known = subject.rows[row]
    right = known.right[0]
    defined = functions_of(right)
    named = [name for name in defined if inputs_of(known, name)]
    read = stdin_of(known)
    if not named and not read:
        return None
    draws = subject.draws("mutants", row)
    name = named[-1] if named else ""
    if name:
        inputs = inputs_of(known, name)
        inputs += more_inputs(inputs, draws)
    else:
        inputs = [[one] for one in (*read, *more_stdin(read, draws))]
    changed = [*mutants(right)]
    changed = draws.sample(changed, min(_MOST_MUTANTS, len(changed)))
    if not changed:
        return None
    return name, changed, comparison(right, name, [text for _, text in changed], inputs)
