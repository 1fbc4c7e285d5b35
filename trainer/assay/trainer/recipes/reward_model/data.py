"""Training and held-out rows, without a common prompt.

A prompt's text and the seed alone decide whether it is held out, so that added or sorted rows
change nothing.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from assay.clients.rows.items import RowError
from assay.clients.rows.points import CritiqueRow, PointRow, critique_of, points_of
from assay.clients.rows.preferences import (
    PairRow,
    Said,
    StepRow,
    is_pair,
    pairs_of,
    prompt_of,
    read,
    steps_of,
)
from assay.clients.rows.published import as_plain, format_of
from assay.kit.errors import ConfigError
from assay.trainer.data.origin import shortened
from assay.trainer.data.sources import hub_rows
from assay.trainer.recipes.reward_model.cleaning import ReadRow, cleaned
from assay.trainer.recipes.reward_model.config import RmConfig, RmDataConfig

_PROMPT_KEYS = ("prompt", "problem", "question", "query")
R = TypeVar("R", PairRow, PointRow, CritiqueRow, StepRow)


@dataclass(frozen=True, slots=True)
class Rows(Generic[R]):
    """Rows on both sides of the split."""

    train: tuple[R, ...]  # to learn from; not empty
    eval: tuple[R, ...]  # held out; no prompt of theirs is in `train`
    skipped: int = 0  # rows that were not as they should be, with data.bad_rows = "skip"
    left_out: Mapping[str, int] = field(default_factory=dict)  # by rule of data.clean


AnyRows = Rows[PairRow] | Rows[PointRow] | Rows[CritiqueRow] | Rows[StepRow]


def load_rows(config: RmConfig) -> AnyRows:
    """Reads and splits the settings' rows, of the shape that the kind of judge learns from.

    Raises:
        ConfigError: a file or data set cannot be read, a row is malformed (the text names file and
            line), or nothing is left to learn from.
    """
    data = config.data
    match config.method.kind:
        case "prm":
            return _load(config, lambda row: [steps_of(row, data.labels)])
        case "pointwise":
            return _load(config, points_of)
        case "critique":
            return _load(config, lambda row: [critique_of(row)])
        case _:
            return _load(config, lambda row: pairs_of(row, data.styles))


def described(config: RmConfig, rows: AnyRows) -> dict[str, Any]:
    """What a run learns from, for run.json: source, name, counts, a digest, the first prompt."""
    data, digest = config.data, hashlib.sha256()
    for row in (*rows.train, *rows.eval):
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    name = data.name if data.source == "hub" else ", ".join(data.paths)
    return {
        "source": data.source,
        "name": " ".join(filter(None, (name, data.subset, data.split))) if data.name else name,
        "train": len(rows.train),
        "eval": len(rows.eval),
        "skipped": rows.skipped,
        "left_out": dict(rows.left_out),
        "digest": f"sha256:{digest.hexdigest()}",
        "example": shortened(" ".join(said.content for said in rows.train[0].prompt)),
    }


def against(earlier: Mapping[str, Any] | None, now: Mapping[str, Any]) -> None:
    """Holds the rows of a run that goes on against those that it began with.

    Raises:
        ConfigError: they are others.
    """
    if earlier is not None and earlier.get("digest") != now["digest"]:
        raise ConfigError(
            f"{now['source']} {now['name']} has other rows than this run began with: "
            f"{now['train']} and {now['eval']} held out now, {earlier.get('train')} and "
            f"{earlier.get('eval')} then; start a run of its own, or bring the rows back"
        )


def _load(config: RmConfig, parse: Callable[[dict[str, Any]], list[R]]) -> Rows[R]:
    data = config.data
    hub = data.source == "hub"
    drawn, skipped = _parsed(_hub(data, data.split) if hub else _files(data.paths), data, parse)
    rows, left_out = cleaned(
        _with_margins(drawn, data), data.clean, _prompts_of(data.clean.against)
    )
    if data.eval_split if hub else data.eval_paths:
        separate = _hub(data, data.eval_split) if hub else _files(data.eval_paths)
        held, more = _parsed(separate, data, parse)
        own = [one.row for one in held]
        skipped += more
        train, held_out = _apart(rows, own, config.eval.prompts, data.seed)
    else:
        train, held_out = split(rows, config.eval.prompts, data.seed)
    if data.max_rows and len(train) > data.max_rows:
        train = random.Random(data.seed).sample(train, data.max_rows)  # noqa: S311  # no secret
    if not train:
        raise ConfigError(
            f"no rows to learn from: {len(rows)} rows, {len(held_out)} of them held out"
            + (f", {left_out.total()} left out by data.clean" if left_out else "")
            + "; lower eval.prompts, or give more data"
        )
    return Rows(tuple(train), tuple(held_out), skipped, left_out)


def _prompts_of(paths: Sequence[str]) -> Iterator[Sequence[Said]]:
    """The prompts of benchmarks, in any shape that is read."""
    for where, row in _files(paths):
        try:
            plain = as_plain(row, format_of(row))
            dialogue = is_pair(plain) and "prompt" not in plain
            yield pairs_of(plain)[0].prompt if dialogue else prompt_of(plain, *_PROMPT_KEYS)
        except RowError as error:
            raise ConfigError(f"data.clean.against: {where}: {error}") from error


def _with_margins(drawn: Sequence[ReadRow[R]], data: RmDataConfig) -> list[ReadRow[R]]:
    """The rows with what another judge said of them, where it was asked.

    Raises:
        ConfigError: it was asked about other rows, or not about pairs.
    """
    if not data.clean.judged:
        return list(drawn)
    margins: defaultdict[str, list[float | None]] = defaultdict(list)
    for path, judged in zip(data.paths, data.clean.judged, strict=True):
        for _, line in read(Path(judged).expanduser()):
            margins[f"{path}:{line.get('line')}"].append(_margin(line, judged))
    places: Counter[str] = Counter()
    found = []
    for one in drawn:
        said, place = margins[one.where], places[one.where]
        if place >= len(said):
            raise ConfigError(
                f"data.clean.judged: nothing is said of {one.where}; evaluate the whole file, with "
                "the same --styles as data.styles"
            )
        places[one.where] += 1
        found.append(replace(one, margin=said[place]))
    return found


def _margin(line: Mapping[str, Any], where: str) -> float | None:
    if line.get("fault") is not None:
        return None
    if "win_probability" in line:
        return float(2 * line["win_probability"] - 1)
    if "score_chosen" in line:
        return float(line["score_chosen"] - line["score_rejected"])
    raise ConfigError(
        f"data.clean.judged: {where} holds no judgements of pairs; name what `assay eval-judge -o` "
        "wrote about the pairs"
    )


def _parsed(
    rows: Iterable[tuple[str, dict[str, Any]]],
    data: RmDataConfig,
    parse: Callable[[dict[str, Any]], list[R]],
) -> tuple[list[ReadRow[R]], int]:
    """Rows of the wanted subsets, and how many were skipped.

    Raises:
        ConfigError: a row is malformed, or a subset is empty.
    """
    wanted, skipped = set(data.only_subsets), 0
    parsed: list[ReadRow[R]] = []
    seen: set[str] = set()
    for where, row in rows:
        subset = str(row.get("subset") or row.get("classification") or "")
        seen.add(subset)
        if wanted and subset not in wanted:
            continue
        try:
            plain = as_plain(row, format_of(row))
            parsed += [ReadRow(one, where, _own_scores(row)) for one in parse(dict(plain))]
        except RowError as error:
            if data.bad_rows == "stop":
                raise ConfigError(
                    f'{where}: {error}; or pass data.bad_rows="skip" to leave such rows out'
                ) from error
            skipped += 1
    if missing := sorted(wanted - seen):
        known = ", ".join(sorted(seen)[:20]) or "none"
        raise ConfigError(f"data.only_subsets: no rows of {missing[0]!r}; there are {known}")
    return parsed, skipped


def _own_scores(row: Mapping[str, Any]) -> tuple[float, float] | None:
    found = [row.get(key) for key in ("score_chosen", "score_rejected")]
    numbers = [one for one in found if isinstance(one, int | float) and not isinstance(one, bool)]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else None


def _files(paths: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in paths:
        for number, row in read(Path(path).expanduser()):
            yield f"{path}:{number}", row


def _hub(data: RmDataConfig, part: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, row in enumerate(hub_rows(data.name, data.subset, part), start=1):
        yield f"{data.name}[{part}] row {number}", dict(row)


def split(rows: Sequence[R], prompts: int, seed: int) -> tuple[list[R], list[R]]:
    """Splits rows by prompt into those to learn from and those held out, each in order."""
    held_out = set(_draw({row.group for row in rows}, prompts, seed))
    return (
        [row for row in rows if row.group not in held_out],
        [row for row in rows if row.group in held_out],
    )


def _draw(groups: Iterable[str], count: int, seed: int) -> list[str]:
    def place(group: str) -> bytes:
        return hashlib.sha256(f"{seed}\0{group}".encode("utf-8", "surrogatepass")).digest()

    return sorted(groups, key=place)[:count]


def _apart(rows: Sequence[R], own: Sequence[R], prompts: int, seed: int) -> tuple[list[R], list[R]]:
    """Separate evaluation rows, and the training rows that share no prompt with them."""
    groups = {row.group for row in own}
    kept = set(_draw(groups, prompts, seed)) if prompts else groups
    return (
        [row for row in rows if row.group not in groups],
        [row for row in own if row.group in kept],
    )
