"""The tables of `assay eval-judge`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

Numbers = Mapping[str, Any]
Column = Callable[[Numbers], str]
_NOTHING = "-"
_FILE_COLUMNS = 120


def _share(key: str) -> Column:
    return lambda numbers: _percent(numbers.get(key))


def _percent(value: float | None) -> str:
    return _NOTHING if value is None else f"{100 * value:.1f}"


def _between(key: str) -> Column:
    return lambda numbers: (
        "-"
        if numbers.get(key) is None
        else "{:.1f}-{:.1f}".format(*(100 * x for x in numbers[key]))
    )


def _count(key: str) -> Column:
    return lambda numbers: str(numbers[key])


def _plain(key: str) -> Column:
    return lambda numbers: _NOTHING if numbers.get(key) is None else f"{numbers[key]:.3f}"


def _plain_between(key: str) -> Column:
    return lambda numbers: (
        _NOTHING if numbers.get(key) is None else "{:.3f}-{:.3f}".format(*numbers[key])
    )


def _signed(key: str) -> Column:
    return lambda numbers: _NOTHING if numbers.get(key) is None else f"{100 * numbers[key]:+.1f}"


def _faults(numbers: Numbers) -> str:
    return str(sum(numbers["faults"].values()))


_ACCURACY: dict[str, Column] = {
    "right\n%": _share("accuracy"),
    "95 %\ninterval": _between("interval"),
}
_COLUMNS: dict[str, dict[str, Column]] = {
    "pairs": {
        **_ACCURACY,
        "better\nfirst": _share("accuracy_chosen_first"),
        "better\nsecond": _share("accuracy_chosen_second"),
        "orders\nagree": _share("order_consistency"),
        "mean\ngap": _plain("mean_order_gap"),
        "picks\nfirst": _share("first_picked"),
        "length\nbias": _signed("length_bias"),
        "ECE": _plain("ece"),
        "ab-\nstained": _count("abstained"),
    },
    "points": {
        **_ACCURACY,
        "AUC": _plain("auc"),
        "95 %\nof AUC": _plain_between("auc_interval"),
        "ECE": _plain("ece"),
        "called\nright": _share("called_right"),
        "length\nbias": _signed("length_bias"),
    },
    "best": {
        **_ACCURACY,
        "by\nchance": _share("by_chance"),
    },
    "steps": {
        "steps": _count("steps"),
        "right\n%": _share("step_accuracy"),
        "AUC": _plain("step_auc"),
        "95 %\nof AUC": _plain_between("step_auc_interval"),
        "error\nF1": _plain("error_f1"),
        "preci-\nsion": _plain("error_precision"),
        "recall": _plain("error_recall"),
        "first\nerror": _share("first_error_accuracy"),
        "process\nF1": _plain("process_f1"),
        "95 %\nof F1": _plain_between("process_f1_interval"),
        "whole": _share("whole_accuracy"),
    },
}
"""Shares are in percent. "better first": right where the better response is in the first place.
"picks first": how often the first place wins, 50 % without bias. "length bias": how much more often
the longer response wins than it is the better one, in points."""


def print_report(console: Console, report: Numbers) -> None:
    """Prints a report of `--json`: by subset, the benchmark, agreement, faults, tokens, time."""
    if not console.is_terminal:
        console.width = max(console.width, _FILE_COLUMNS)
    console.print(_by_subset(report))
    if report.get("benchmark"):
        console.print(_benchmark(report["benchmark"]))
    if report.get("agreement"):
        console.print(_agreement(report["agreement"]))
    console.print(_cost(report))


def _by_subset(report: Numbers) -> Table:
    rows = {**report["subsets"], "all": report["all"]}
    columns = {
        name: read
        for name, read in _COLUMNS[report["kind"]].items()
        if any(read(numbers) != _NOTHING for numbers in rows.values())
    }
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("subset", overflow="fold", min_width=14)
    for name in ("n", *columns, "faults"):
        table.add_column(name, justify="right")
    for name, numbers in rows.items():
        cells = [read(numbers) for read in columns.values()]
        table.add_row(Text(name), _count("items")(numbers), *cells, _faults(numbers))
    return table


def _benchmark(found: Numbers) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=found["name"])
    table.caption = found["counted"]
    for name in ("part", "score", "95 %\ninterval", "rows", "faults"):
        table.add_column(name, justify="left" if name == "part" else "right")
    for name, part in found["parts"].items():
        figures = _share("score")(part), _between("interval")(part)
        table.add_row(Text(name or "-"), *figures, str(part["rows"]), str(part["faults"]))
    for name, value in found.get("categories", {}).items():
        table.add_row(Text(f"category {name}"), _percent(value), "", "", "")
    table.add_row("score", _share("score")(found), _between("interval")(found), "", "")
    if found["score_with_faults"] is not None:
        text = "with faults, as its code counts them"
        table.add_row(text, _percent(found["score_with_faults"]), "", "", "")
    return table


def _agreement(found: Numbers) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title="agreement of judges")
    for name in ("judges", "verdicts", "agree\n%", "kappa", "95 %\ninterval", "only\n1st right",
                 "only\n2nd right", "p"):  # fmt: skip
        table.add_column(name, justify="left" if name == "judges" else "right", overflow="fold")
    for pair in found["pairs"]:
        table.add_row(
            Text(" and ".join(pair["judges"])),
            str(pair["both"]),
            _share("agree")(pair),
            _plain("kappa")(pair),
            _plain_between("interval")(pair),
            str(pair["only_first"]),
            str(pair["only_second"]),
            _plain("p")(pair),
        )
    alphas = f"Krippendorff's alpha of the verdicts {_plain('alpha')(found)}"
    table.caption = f"{alphas}, of the scores {_plain('alpha_scores')(found)}"
    return table


def _cost(report: Numbers) -> Table:
    numbers = report["all"]
    table = Table(show_header=False)
    for judge in report.get("judges", ()):
        names = (f"{key} {value}" for key, value in judge.items() if value and key != "items")
        table.add_row("judge", Text(", ".join(names)))
    for reason, count in numbers["faults"].items():
        table.add_row(Text(f"fault {reason}"), str(count))
    for why, count in report["skipped"].items():
        table.add_row(Text(f"rows left out: {why}"), str(count))
    for key, what in (("truncated", "candidates cut"), ("unparsed_votes", "votes not parsed")):
        if numbers[key]:
            table.add_row(what, str(numbers[key]))
    if mass := numbers.get("verdict_mass"):
        text = f"{mass['median']:.2g} of the probability (median; least {mass['least']:.2g})"
        table.add_row("verdicts hold", text)
    if gap := numbers.get("letter_gap"):
        text = f"{gap['mean']:.2g} (mean; greatest {gap['greatest']:.2g})"
        table.add_row("verdicts move with their letters", text)
    tokens = numbers["tokens_per_item"]
    if tokens["prompt"] is not None:
        text = f"{tokens['prompt']:.0f} ({tokens['cached']:.0f} of them cached)"
        table.add_row("tokens read per item", text)
        table.add_row("tokens written per item", f"{tokens['completion']:.1f}")
    if numbers["engine_seconds"]:
        table.add_row("seconds of the engine", f"{numbers['engine_seconds']:.3f}")
    if numbers["cost"]:
        table.add_row("cost", f"{numbers['cost']:.6g}")
    table.add_row("seconds per item", f"{report['seconds_per_item']:.3f}")
    return table
