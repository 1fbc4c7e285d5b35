"""How far judges agree on the same questions, from the lines of their evaluations. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from assay.cli.evaluation.best import found_best
from assay.cli.evaluation.measures import half_right
from assay.cli.evaluation.steps import cells_of
from assay.kit.errors import ConfigError
from assay.kit.runs.agreement import cohen_kappa, interval, krippendorff_alpha
from assay.kit.runs.bootstrap import Figure, bootstrap
from assay.kit.runs.stats import mcnemar_exact

Line = Mapping[str, Any]
Said = tuple[float, float | None]  # the verdict as a number, and the score it came from
_ROUNDS = 200
_TIE = -1.0


def agreement_report(
    judges: Mapping[str, Sequence[Line]], threshold: float = 0.5
) -> dict[str, Any]:
    """Agreement of each two judges and of all together.

    Args:
        judges: the lines of each, by name; two or more.
        threshold: a response with this score or more is called right.

    Returns:
        `items` with two verdicts; Krippendorff's `alpha` of verdicts, `alpha_scores` of scores; for
        each two judges the verdicts of `both`, the share that `agree`, Cohen's `kappa` with an
        `interval`, rows that `only_first` or `only_second` had right, and McNemar's exact `p`.

    Raises:
        ConfigError: two judges have no row in common.
    """
    said = {name: _verdicts(lines, threshold) for name, lines in judges.items()}
    keys = sorted(set().union(*said.values()))
    units = [[verdicts.get(key) for verdicts in said.values()] for key in keys]
    return {
        "items": sum(sum(one is not None for one in unit) > 1 for unit in units),
        "alpha": krippendorff_alpha([[one and one[0] for one in unit] for unit in units]),
        "alpha_scores": krippendorff_alpha(
            [[one and one[1] for one in unit] for unit in units], interval
        ),
        "pairs": [
            {
                "judges": [first, second],
                **_of_two(said[first], said[second], f"{first} and {second}"),
                **_right_alone(judges[first], judges[second], threshold),
            }
            for first, second in combinations(said, 2)
        ],
    }


Key = tuple[str, int]  # a question, and the step of it


def _verdicts(lines: Sequence[Line], threshold: float) -> dict[Key, Said]:
    found: dict[Key, Said] = {}
    for line in lines:
        if line["fault"] is None:
            name = f"{line['line']} {line['id']}"
            for place, verdict in enumerate(_SAID[line["kind"]](line, threshold)):
                if verdict is not None:
                    found[name, place] = verdict
    return found


def _of_pair(line: Line, _threshold: float) -> list[Said | None]:
    win = line["win_probability"]
    return [(_TIE if win == 0.5 else half_right(win), win)]


def _of_point(line: Line, threshold: float) -> list[Said | None]:
    if "score" in line:
        return [(float(line["score"] >= threshold), line["score"])]
    chosen, rejected = line["score_chosen"], line["score_rejected"]
    if chosen == rejected:
        return [(_TIE, 0.0)]
    return [(float(chosen > rejected), chosen - rejected)]


def _of_steps(line: Line, _threshold: float) -> list[Said | None]:
    bound = line["error_threshold"]
    return [None if score is None else (float(score >= bound), score) for score in line["scores"]]


def _of_best(line: Line, _threshold: float) -> list[Said | None]:
    scores = line["scores"]
    most = max(scores)
    return [(_TIE if scores.count(most) > 1 else float(scores.index(most)), None)]


_SAID: Mapping[str, Callable[[Line, float], list[Said | None]]] = {
    "pairs": _of_pair,
    "points": _of_point,
    "steps": _of_steps,
    "best": _of_best,
}


def _of_two(one: Mapping[Key, Said], other: Mapping[Key, Said], names: str) -> dict[str, Any]:
    rows: dict[str, list[tuple[float, float]]] = {}
    for key in sorted(one.keys() & other.keys()):
        rows.setdefault(key[0], []).append((one[key][0], other[key][0]))
    if not rows:
        raise ConfigError(
            f"{names} judged no row in common; compare evaluations of one file, with the same "
            "--as, --format, --limit and --styles"
        )
    pairs = [pair for some in rows.values() for pair in some]
    found: Figure | None = bootstrap(list(rows.values()), cohen_kappa, rounds=_ROUNDS)
    return {
        "both": len(pairs),
        "agree": sum(a == b for a, b in pairs) / len(pairs),
        "kappa": found and found.value,
        "interval": found and [found.low, found.high],
    }


def _right_alone(one: Sequence[Line], other: Sequence[Line], threshold: float) -> dict[str, Any]:
    """How many rows only one of two judges had right, and whether that is chance."""
    before = {(line["line"], line["id"]): _is_right(line, threshold) for line in one}
    gained = lost = 0
    for line in other:
        first, second = before.get((line["line"], line["id"])), _is_right(line, threshold)
        if first is not None and second is not None:
            gained += second and not first
            lost += first and not second
    return {"only_first": lost, "only_second": gained, "p": mcnemar_exact(gained, lost)}


def _is_right(line: Line, threshold: float) -> bool | None:
    if line["fault"] is not None:
        return None
    match line["kind"]:
        case "pairs":
            return bool(line["win_probability"] > 0.5)
        case "points" if "score" in line:
            return bool((line["score"] >= threshold) == (line["label"] > 0))
        case "points":
            return bool(line["score_chosen"] > line["score_rejected"])
        case "best":
            return found_best(line["scores"], line["correct"]) == 1.0
        case _:
            return cells_of(line).first_right
