"""Compares two verifiers on the same rows.

A verifier *accepts* a response when the reward is above the middle of its range, or above a given
bound, so that verifiers with different ranges can be compared. A row without a judgement of both is
counted apart. The summary also counts by what both said, a verdict or the reason of a fault.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from assay.cli.parameters import find_verifier, read_parameters, split_function, split_spec
from assay.cli.scoring.rows import Row, input_value, outcome_columns, passed_through
from assay.clients.types import Item, Parameter, Result, ServerInfo, VerifierInfo
from assay.kit.runs.stats import wilson

OUTPUT_KEYS = ("judgement_a", "judgement_b", "agree")
_SHOWN_CHARS = 60
_EQUAL = 1e-9


@dataclass(frozen=True, slots=True)
class Contender:
    """One of the two verifiers.

    Attributes:
        label: its name on the command line.
        parameters: these take precedence over a row's.
        above: it accepts rewards above this.
    """

    label: str
    info: VerifierInfo
    parameters: Mapping[str, Parameter]
    above: float

    def item(self, item: Item) -> Item:
        """The row's item for this verifier, with those of the row's parameters that it has."""
        known = {parameter.name for parameter in self.info.parameters}
        own = {name: value for name, value in item.parameters.items() if name in known}
        return dataclasses.replace(
            item, id="", task="", verifier=self.info.name, parameters={**own, **self.parameters}
        )

    def columns(self, result: Result) -> dict[str, Any]:
        """The output for its result."""
        columns = {"verifier": self.label, **outcome_columns(result)}
        reward = result.reward
        columns["accepts"] = None if reward is None else reward > self.above
        return columns


def read_contender(server: ServerInfo, spec: str, above: float | None) -> Contender:
    """Reads `NAME`, `FILE.py:FUNCTION` or either with `:param=value,...`.

    The default bound is the middle of the range.

    Raises:
        ConfigError: The server has no such verifier, or the verifier no such parameter.
    """
    judge, pairs = split_spec(spec)
    info = find_verifier(server, split_function(judge)[0])
    middle = (info.min_reward + info.max_reward) / 2
    parameters = read_parameters(info, pairs)
    return Contender(spec, info, parameters, middle if above is None else above)


@dataclass(slots=True)
class ComparisonTally:
    """Counts over the rows so far.

    Attributes:
        show: how many disagreeing rows are kept as examples.
        kept: columns of the input that have another name in the output: (own, there).
        reference_key: of the rows' reference, which is shown beside the examples.
        outcomes: rows by who accepts: (a, b).
        said: rows by what both said: (a, b), each a verdict or "fault REASON".
        faulted: rows without a judgement of both.
        reward_sums: of each, over rows that both judged.
        reward_differs: rows that both judged, with different rewards.
    """

    labels: tuple[str, str]
    show: int = 10
    kept: Sequence[tuple[str, str]] = ()
    reference_key: str = ""
    outcomes: Counter[tuple[bool, bool]] = field(default_factory=Counter)
    said: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    faulted: int = 0
    reward_sums: list[float] = field(default_factory=lambda: [0.0, 0.0])
    reward_differs: int = 0
    suspicions: tuple[Counter[str], Counter[str]] = field(
        default_factory=lambda: (Counter(), Counter())
    )
    examples: list[dict[str, Any]] = field(default_factory=list)

    def add(self, line: dict[str, Any]) -> None:
        """Counts one row of output."""
        both = line["judgement_a"], line["judgement_b"]
        for index, judgement in enumerate(both):
            if judgement["fault"] is not None:
                self.faults[index][judgement["fault"]["reason"]] += 1
            self.suspicions[index].update(judgement["suspicions"] or ())
        self.said[_said(both[0]), _said(both[1])] += 1
        if line["agree"] is None:
            self.faulted += 1
            return
        self.outcomes[both[0]["accepts"], both[1]["accepts"]] += 1
        for index, judgement in enumerate(both):
            self.reward_sums[index] += judgement["reward"]
        self.reward_differs += abs(both[0]["reward"] - both[1]["reward"]) > _EQUAL
        if not line["agree"] and len(self.examples) < self.show:
            self.examples.append(line)

    @property
    def judged(self) -> int:
        """Rows that both judged."""
        return self.outcomes.total()

    @property
    def agreed(self) -> int:
        """Rows that both judged alike."""
        return self.outcomes[True, True] + self.outcomes[False, False]

    @property
    def done(self) -> int:
        """Rows counted."""
        return self.judged + self.faulted

    def numbers(self) -> dict[str, Any]:
        """What the summary says, as plain data; `only_a` counts rows that only A accepts."""
        both = zip("ab", self.labels, self.reward_sums, self.faults, strict=True)
        return {
            "rows": self.done,
            "judged": self.judged,
            "faulted": self.faulted,
            "both_accept": self.outcomes[True, True],
            "both_reject": self.outcomes[False, False],
            "only_a": self.outcomes[True, False],
            "only_b": self.outcomes[False, True],
            "agreement": self.agreed / self.judged if self.judged else None,
            "rewards_differ": self.reward_differs,
            "said": [{"a": a, "b": b, "rows": n} for (a, b), n in self.said.most_common()],
            "kept_columns": [{"column": own, "kept_as": there} for own, there in self.kept],
        } | {
            side: {
                "verifier": label,
                "mean_reward": total / self.judged if self.judged else None,
                "faults": dict(reasons.most_common()),
            }
            for side, label, total, reasons in both
        }

    def report(self) -> RenderableType:
        """The summary, the rows by what both said, and the first disagreements."""
        parts = [self._summary(), self._by_what_was_said()]
        return Group(*parts, self._examples()) if self.examples else Group(*parts)

    def _summary(self) -> Table:
        table = Table(show_header=False)
        a, b = self.labels
        table.add_row("A", Text(a))
        table.add_row("B", Text(b))
        table.add_row("rows", str(self.done))
        table.add_row("both accept", self._share(self.outcomes[True, True]))
        table.add_row("both reject", self._share(self.outcomes[False, False]))
        table.add_row("only A accepts", self._share(self.outcomes[True, False]))
        table.add_row("only B accepts", self._share(self.outcomes[False, True]))
        table.add_row("agreement", self._agreement())
        table.add_row("rewards differ", self._share(self.reward_differs))
        for name, total in zip("AB", self.reward_sums, strict=True):
            mean = f"{total / self.judged:.4f}" if self.judged else "nothing was judged by both"
            table.add_row(f"mean reward {name}", mean)
        table.add_row("rows with a fault", str(self.faulted))
        for name, reasons in zip("AB", self.faults, strict=True):
            for reason, count in reasons.most_common():
                table.add_row(f"fault {reason} of {name}", str(count))
        for name, signs in zip("AB", self.suspicions, strict=True):
            for sign, count in signs.most_common():
                table.add_row(Text(f"suspicion {sign} of {name}"), str(count))
        for own, there in self.kept:
            table.add_row(Text(f"input column {own}"), Text(f"kept as {there}"))
        return table

    def _by_what_was_said(self) -> Table:
        table = Table(title="rows by what both said")
        table.add_column("A")
        table.add_column("B")
        table.add_column("rows", justify="right")
        for (a, b), count in self.said.most_common():
            table.add_row(Text(a), Text(b), str(count))
        return table

    def _share(self, count: int) -> str:
        return f"{count} ({100 * count / self.judged:.2f} %)" if self.judged else str(count)

    def _agreement(self) -> str:
        if not self.judged:
            return "nothing was judged by both"
        low, high = wilson(self.agreed, self.judged)
        rate = 100 * self.agreed / self.judged
        return f"{rate:.2f} % (95 % interval {100 * low:.2f} to {100 * high:.2f})"

    def _examples(self) -> Table:
        count = self.judged - self.agreed
        table = Table(title=f"first {len(self.examples)} of {count} rows on which they disagree")
        for name in ("id", "reference", "by", "verdict", "reward", "answer", "why"):
            table.add_column(name, overflow="fold")
        for line in self.examples:
            for name, key in zip("AB", OUTPUT_KEYS, strict=False):
                judgement = line[key]
                table.add_row(
                    Text(_clip(line.get("id")) if name == "A" else ""),
                    Text(_clip(input_value(line, self.reference_key)) if name == "A" else ""),
                    name,
                    Text(str(judgement["verdict"])),
                    f"{judgement['reward']:g}",
                    Text(_clip(judgement["answer"])),
                    Text(_clip(judgement["explanation"], 2 * _SHOWN_CHARS)),
                    end_section=name == "B",
                )
        return table


class Comparing:
    """The work of `assay score --compare`: both judge every row.

    With `keep_all` rows on which they agree are written too.
    """

    def __init__(
        self, a: Contender, b: Contender, tally: ComparisonTally, *, keep_all: bool
    ) -> None:
        self._pair = a, b
        self.selects = not keep_all
        self.tally = tally

    def items(self, row: Row) -> Sequence[Item]:
        """One item for each of the two."""
        return [contender.item(row.item) for contender in self._pair]

    def line(self, row: Row, results: Sequence[Result]) -> dict[str, Any]:
        """The row's own keys and both judgements; `agree` is null where one is a fault."""
        line = passed_through(row, OUTPUT_KEYS)
        a, b = (one.columns(result) for one, result in zip(self._pair, results, strict=True))
        judged = a["accepts"] is not None and b["accepts"] is not None
        line.update(judgement_a=a, judgement_b=b)
        line["agree"] = a["accepts"] == b["accepts"] if judged else None
        return line

    def select(self, line: dict[str, Any]) -> bool:
        """Whether the two disagree."""
        return line["agree"] is False

    def identity(self) -> dict[str, Any]:
        """The two, with versions and parameters."""
        return {
            "compare": [
                [one.info.name, one.info.version, _plain(one.parameters), one.above]
                for one in self._pair
            ]
        }


def _said(judgement: Mapping[str, Any]) -> str:
    fault = judgement["fault"]
    return str(judgement["verdict"]) if fault is None else f"fault {fault['reason']}"


def _plain(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in parameters.items()
    }


def _clip(value: object, limit: int = _SHOWN_CHARS) -> str:
    text = " ".join(str("" if value is None else value).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
