"""Before and after, side by side: for programs, for people, and on the screen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.table import Table

from assay.clients.types import VerifierInfo
from assay.kit.runs.stats import mcnemar_exact
from assay.trainer.core.estimates import paired_mean_change, sign_flip_p
from assay.trainer.core.evaluation import Answer, Evaluation, powers_up_to

Report = Mapping[str, Any]


def compare(before: Evaluation, after: Evaluation) -> dict[str, Any]:
    """Both summaries, and the change on the problems judged both times.

    Returns:
        `before`, `after` (see Evaluation.summary) and `change`: pairs of problems, how many gained
        and lost, the mean change of accuracy (avg@k) with its 95 % interval, `p` with the name of
        its `test`, and for several samples the change of each `pass_at`, of `maj` and of each
        `best_at`; `suites` the same of each suite evaluated both times.
    """
    k = max(before.samples, after.samples)
    pairs = _pairs(before, after, 1)
    differences = [new - old for old, new in pairs]
    change, low, high = paired_mean_change(differences, samples=k)
    gained = sum(difference > 0 for difference in differences)
    lost = sum(difference < 0 for difference in differences)
    return {
        "before": before.summary(),
        "after": after.summary(),
        "change": {
            "pairs": len(pairs),
            "gained": gained,
            "lost": lost,
            "accuracy": change,
            "accuracy_low": low,
            "accuracy_high": high,
            "p": mcnemar_exact(gained, lost) if k == 1 else sign_flip_p(differences),
            "test": "McNemar" if k == 1 else "sign flips",
            "pass_at": {
                str(n): _change(before.pass_values(n), after.pass_values(n), k / n)
                for n in powers_up_to(k)[1:]
            },
            "maj": _change(before.majority_values(), after.majority_values(), 1)
            if _votes(before) and _votes(after)
            else None,
            "best_at": {
                str(n): _change(before.best_values(n), after.best_values(n), k / n)
                for n in powers_up_to(k)[1:]
                if before.best_values(n) and after.best_values(n)
            },
        },
        **(
            {
                "suites": {
                    name: compare(suite, after.suites[name])
                    for name, suite in before.suites.items()
                    if name in after.suites
                }
            }
            if before.suites
            else {}
        ),
    }


def _votes(evaluation: Evaluation) -> bool:
    return evaluation.majority_at_k() is not None


def _pairs(before: Evaluation, after: Evaluation, k: int) -> list[tuple[float, float]]:
    return _paired(before.pass_values(k), after.pass_values(k))


def _paired(old: Mapping[str, float], new: Mapping[str, float]) -> list[tuple[float, float]]:
    return [(old[problem], new[problem]) for problem in old if problem in new]


def _change(old: Mapping[str, float], new: Mapping[str, float], samples: float) -> dict[str, Any]:
    pairs = _paired(old, new)
    value, low, high = paired_mean_change([b - a for a, b in pairs], samples=samples)
    return {"pairs": len(pairs), "value": value, "low": low, "high": high}


def faults_by_reason(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Rollouts without a judgement over the whole training, most frequent first."""
    found: Counter[str] = Counter()
    for row in rows:
        found.update(row.get("faults") or {})
    return dict(found.most_common())


def hacking_gap(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Reward and gold reward over the first and the last quarter of the steps that have both.

    Returns:
        `first` and `last`, each with `steps` and the means `proxy`, `reward` (of gold) and `gap`;
        and `change`, of the gap. None without a gold verifier's judgement.
    """
    both = [row for row in rows if row.get("gold_gap") is not None]
    if not both:
        return None
    some = max(1, len(both) // 4)
    first, last = _gap_of(both[:some]), _gap_of(both[-some:])
    return {"first": first, "last": last, "change": last["gap"] - first["gap"]}


def _gap_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    means = {key: fmean(row[f"gold_{key}"] for row in rows) for key in ("proxy", "reward", "gap")}
    return {"steps": [rows[0]["step"], rows[-1]["step"]], **means}


def _rows(report: Report) -> list[tuple[str, str, str, str]]:
    before, after, change = report["before"], report["after"], report["change"]
    k = after["samples"]
    rows = [
        (
            "accuracy" if k == 1 else f"avg@{k}",
            interval(before, "accuracy"),
            interval(after, "accuracy"),
            points(change["accuracy"], change["accuracy_low"], change["accuracy_high"]),
        )
    ]
    for n, passed in after["pass_at"].items():
        if n != "1":
            then = before["pass_at"].get(n)
            rows.append(_moved(f"pass@{n}", then, passed, change["pass_at"][n]))
    if before["maj"] or after["maj"]:
        rows.append(_moved(f"maj@{k}", before["maj"], after["maj"], change["maj"]))
    for n, best in after.get("best_at", {}).items():
        then = before.get("best_at", {}).get(n)
        rows.append(_moved(f"best@{n}", then, best, change["best_at"].get(n)))
    plain = (
        ("faults, left out", "faults", "d"),
        ("prompts without a judgement", "unjudged", "n"),
        ("mean reward", "mean_reward", ".3f"),
        ("mean length, tokens", "mean_length", ".1f"),
        ("cut at the limit", "truncated", ".0%"),
    )
    return [
        *rows,
        ("correct of judged", _judged(before), _judged(after), ""),
        *(
            (said, _number(before, key, form), _number(after, key, form), "")
            for said, key, form in plain
        ),
    ]


def _moved(
    name: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    change: Mapping[str, Any] | None,
) -> tuple[str, str, str, str]:
    moved = points(change["value"], change["low"], change["high"]) if change else ""
    return name, interval(before, "value"), interval(after, "value"), moved


def interval(side: Mapping[str, Any] | None, key: str) -> str:
    """A share with its interval, in percent; a dash for none."""
    if side is None or side[key] is None:
        return "-"
    low, high = ("low", "high") if key == "value" else (f"{key}_low", f"{key}_high")
    return f"{side[key]:.1%}  [{side[low]:.1%}, {side[high]:.1%}]"


def points(change: float, low: float, high: float) -> str:
    """A change with its interval, in points."""
    return f"{100 * change:+.1f}  [{100 * low:+.1f}, {100 * high:+.1f}]"


def _judged(side: Mapping[str, Any]) -> str:
    return f"{side['correct']} of {side['judged']}"


def _number(side: Mapping[str, Any], key: str, form: str) -> str:
    if form == "n":
        return str(len(side[key]))
    return "-" if side[key] is None else format(side[key], form)


def accuracies(report: Report) -> str:
    """Accuracy before and after, in a few words."""
    sides = (report[when]["accuracy"] for when in ("before", "after"))
    return " -> ".join("-" if value is None else f"{value:.1%}" for value in sides)


def change_line(report: Report) -> str:
    """The paired change in one line."""
    change, k = report["change"], report["after"]["samples"]
    p = change["p"]
    p_text = f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"  # three decimals, then powers of ten
    return (
        f"change {'' if k == 1 else f'of avg@{k} '}on the same {change['pairs']} prompts: "
        f"{100 * change['accuracy']:+.1f} points "
        f"[{100 * change['accuracy_low']:+.1f}, {100 * change['accuracy_high']:+.1f}], "
        f"{change['gained']} gained, {change['lost']} lost, {change['test']} p = {p_text}"
    )


def _asked(report: Report, what: str = "held-out prompts") -> str:
    prompts, k = report["after"]["prompts"], report["after"]["samples"]
    return f"{prompts} {what}, {'greedy' if k == 1 else f'{k} samples each'}"


def figures(told: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The estimates of a summary by name: avg@k, pass@k, maj@k, best@k."""
    k = told["samples"]
    pass_at, best_at = told["pass_at"], told.get("best_at", {})
    accuracy = {key: told[f"accuracy{end}"] for key, end in ENDS}
    named = [("accuracy" if k == 1 else f"avg@{k}", accuracy)]
    named += [(f"pass@{n}", found) for n, found in pass_at.items() if n != "1"]
    named += [(f"maj@{k}", told["maj"])] if told["maj"] else []
    return named + [(f"best@{n}", found) for n, found in best_at.items()]


_WHEN = ("first", "last")
ENDS = (("value", ""), ("low", "_low"), ("high", "_high"))
SUITE_COLUMNS = ("figure", "value, 95 %", "items", "faults", "without a judgement")


def suite_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Rows of a table of suites, a figure each; faults and items without a judgement once."""
    rows: list[tuple[str, ...]] = []
    for suite, found in evaluation.suites.items():
        told = found.summary()
        for n, (name, estimate) in enumerate(figures(told)):
            asked = f"{told['faults']} of {len(found.answers)}"
            counts = (str(told["prompts"]), asked, str(len(told["unjudged"])))
            rows.append(
                (suite if not n else "", name, interval(estimate, "value"))
                + (counts if not n else ("", "", ""))
            )
    return rows


def grid(title: str, names: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> Table:
    """A table for a terminal, or for a log, which is narrow: long cells are folded.

    `names` are those of all columns but the first.
    """
    made = Table(title=title, title_justify="left", caption=note or None, caption_justify="left")
    made.add_column("", overflow="fold")
    for name in names:
        made.add_column(name, justify="right", overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def markdown_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of a table whose columns, all but the first, are numbers."""
    cells = [names, ["---", *["---:"] * (len(names) - 1)], *rows]
    return [f"| {' | '.join(row)} |" for row in cells]


def table(report: Report, what: str = "held-out prompts") -> Table:
    """The comparison for a terminal."""
    note = "95 % intervals in brackets; change in points, of prompts judged both times"
    return grid(_asked(report, what), ("before", "after", "change"), _rows(report), note)


def markdown(
    report: Report,
    before: Evaluation | None,
    after: Evaluation | None,
    *,
    show: int,
    method: str = "",
    data: Sequence[str] = (),
) -> str:
    """The report for people.

    `report` holds `run`, and may hold the result of `compare`, `faults` by reason, and `judged_by`
    as `told_verifier` gives it.
    `show` responses stand side by side; `method` describes the training, and
    `data` its rows.
    """
    run = report["run"]
    verifier = report.get("judged_by")
    parts = [
        f"# {run['name']}: {run['model']}",
        f"{run['steps']} steps of {run['samples_per_step']} samples, seed {run['seed']}.",
    ]
    if data:
        parts += ["## Data", _block("\n".join(data))]
    if method.strip():
        parts += ["## Method", _block(method)]
    if before is not None and after is not None:
        if report["after"]["prompts"]:
            parts += ["## Before and after", *_comparison(report)]
        for name, suite in report.get("suites", {}).items():
            parts += [f"## {name}", *_comparison(suite, f"items of {name}")]
    if verifier is not None:
        parts += ["## Verifier", _verifier(verifier)]
    parts += ["## Training", "![curves](curves.png)", _faults(report.get("faults"))]
    if gold := report.get("gold"):
        parts += ["## Reward and gold reward", _gap(gold)]
    if before is not None and after is not None and show and after.answers:
        parts += ["## Responses", *_responses(before, after, show)]
    return "\n\n".join(part for part in parts if part)


def _comparison(report: Report, what: str = "held-out prompts") -> list[str]:
    said = change_line(report)
    rows = markdown_table(["", "before", "after", "change, points"], _rows(report))
    left_out = {
        k: passed["left_out"]
        for k, passed in report["after"]["pass_at"].items()
        if passed["left_out"]
    }
    notes = [
        f"{said[0].upper()}{said[1:]}.",
        (
            "In brackets 95 % intervals over prompts like these; the change is that of prompts "
            "judged both times. Responses without a judgement are left out."
        ),
    ]
    if left_out:
        listed = ", ".join(f"pass@{k} {count}" for k, count in left_out.items())
        notes.append(f"Prompts left out after, for too few judgements: {listed}.")
    notes += [
        f"Without any judgement {when}: {', '.join(report[when]['unjudged'])}."
        for when in ("before", "after")
        if report[when]["unjudged"]
    ]
    return [f"{_asked(report, what)}:", "\n".join(rows), *notes]


def told_verifier(verifier: VerifierInfo) -> dict[str, Any]:
    """The verifier that gave the rewards, and how often it was found wrong."""
    rates = [{**asdict(one), "told": one.told(verifier.version)} for one in verifier.reliability]
    return {"name": verifier.name, "version": verifier.version, "reliability": rates}


def _verifier(verifier: Mapping[str, Any]) -> str:
    named = f"`{verifier['name']}`, version `{verifier['version']}`"
    rates = [f"- {one['domain']}: {one['told']}" for one in verifier["reliability"]]
    if not rates:
        return f"{named}. How often it is wrong has not been measured."
    return "\n".join([f"{named}. How often it was found wrong, with 95 % intervals:", "", *rates])


def _faults(faults: Mapping[str, int] | None) -> str:
    if faults is None:
        return ""
    if not faults:
        return "Every rollout of the training was judged."
    told = ((f"`{reason}`", str(count)) for reason, count in faults.items())
    said = "Rollouts without a judgement, which no loss saw (errors.md explains them):"
    return "\n".join([said, "", *markdown_table(["reason", "rollouts"], told)])


def _gap(gold: Mapping[str, Any]) -> str:
    """The hacking gap at the start and at the end."""
    names = [f"steps {gold[when]['steps'][0]} to {gold[when]['steps'][1]}" for when in _WHEN]
    rows = [
        (said, *(f"{gold[when][key]:.3f}" for when in _WHEN))
        for said, key in (("reward", "proxy"), ("gold reward", "reward"), ("gap", "gap"))
    ]
    said = f"Means of the responses that both judged; the gap moved by {gold['change']:+.3f}."
    return "\n".join([*markdown_table(["", *names], rows), "", said])


def _responses(before: Evaluation, after: Evaluation, show: int) -> list[str]:
    first = {answer.problem: answer for answer in before.answers if answer.sample == 0}
    parts = []
    for answer in [answer for answer in after.answers if answer.sample == 0][:show]:
        old = first.get(answer.problem)
        lines = [] if old is None else [_response("before", old)]
        parts += [
            f"**{_inline(answer.question)}** (reference: {_inline(str(answer.reference))})",
            "\n".join([*lines, _response("after", answer)]),
        ]
    return parts


def _response(when: str, answer: Answer) -> str:
    outcome = answer.verdict or f"fault: {answer.fault}"
    return f"- {when} ({outcome}): {_inline(answer.response)}"


def _inline(text: str) -> str:
    flat = " ".join(text.split())
    if not flat:
        return "(empty)"
    fence = "`" * (1 + _longest_run(flat))
    return f"`{flat}`" if fence == "`" else f"{fence} {flat} {fence}"


def _block(text: str) -> str:
    fence = "`" * max(3, 1 + _longest_run(text))
    return f"{fence}text\n{text.strip()}\n{fence}"


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def write(folder: Path, report: Report, text: str) -> None:
    """Writes report.json and, for people, report.md."""
    (folder / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    (folder / "report.md").write_text(f"{text}\n", encoding="utf-8")
