"""Rows of the data, and where they come from: reasoning-gym, a JSON Lines file, or the hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.clients.rows.hub import load_hub
from assay.kit.errors import ConfigError
from assay.trainer.data.streaming import DiskRows, parquet_rows
from assay.trainer.settings.sections import DataConfig

# reasoning-gym seeds problem i with seed + i, so near seeds would share problems.
_EVAL_SEED_OFFSET = 1_000_000_000
# So many times the wanted problems are generated before giving up on finding distinct ones.
_EVAL_SURPLUS = 10
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RowTable:
    """Rows as a source gives them.

    Attributes:
        name: of the file, the task, or the data set with its subset and split.
        digest: "sha256:" of the file's bytes or of the questions and answers that a task made, or
            "fingerprint:" of a data set of the hub.
    """

    rows: Sequence[Row]
    name: str
    digest: str


def read_sources(config: DataConfig, *, eval_prompts: int) -> tuple[RowTable, RowTable | None]:
    """The rows to train on, and those of a file or split for the evaluation, if there is one.

    Rows that reasoning_gym makes for the evaluation differ from one another, and some may be among
    those of the training.

    Raises:
        ConfigError: the source is missing, cannot be read, or makes too few problems.
    """
    match config.source:
        case "reasoning_gym":
            size = min(config.size, config.max_rows or config.size)
            made = tuple(_task_rows(config, seed=config.seed, size=size))
            held_out = _distinct(config, eval_prompts)
            name, digest = config.task, _digest_of(made)
            return RowTable(made, name, digest), RowTable(held_out, name, digest)
        case "jsonl":
            lazy = config.streaming
            separate = file_table(config.eval_path, lazy=lazy) if config.eval_path else None
            return file_table(config.path, lazy=lazy), separate
        case "hub":
            name, subset, lazy = config.name, config.subset, config.streaming
            own = config.eval_split
            separate = hub_table(name, subset, own, lazy=lazy) if own else None
            return hub_table(name, subset, config.split, lazy=lazy), separate
        case _:
            raise ValueError("the sources of a mixture are read one by one")


def file_table(name: str, *, lazy: bool = False) -> RowTable:
    """A .jsonl, .jsonl.gz or .parquet file; `lazy` leaves its rows on disk.

    Raises:
        ConfigError: as `DiskRows`.
    """
    path = Path(name).expanduser()
    if path.suffix == ".parquet":
        mapped = parquet_rows(path)
        rows = mapped if lazy else list(mapped)
    else:
        rows = DiskRows(path) if lazy else list(DiskRows(path))
    with path.open("rb") as file:
        return RowTable(rows, name, f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")


def hub_table(
    name: str, subset: str, split: str, revision: str = "", *, lazy: bool = False
) -> RowTable:
    """A data set of the hub, or a local folder; `lazy` leaves its rows on disk.

    Raises:
        ConfigError: as `load_hub`.
    """
    dataset = load_hub(name, subset, split, revision)
    told = " ".join(filter(None, (name, subset, split, revision)))
    rows = dataset if lazy else list(dataset)
    return RowTable(rows, told, f"fingerprint:{dataset._fingerprint}")  # noqa: SLF001  # no public name


def _digest_of(rows: Sequence[Row]) -> str:
    text = "".join(f"{json.dumps([row['question'], str(row['answer'])])}\n" for row in rows)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _distinct(config: DataConfig, count: int) -> list[Row]:
    found: dict[str, Row] = {}
    if not count:
        return []
    for row in _task_rows(config, seed=config.seed + _EVAL_SEED_OFFSET, size=count * _EVAL_SURPLUS):
        found.setdefault(str(row["question"]), row)
        if len(found) == count:
            return list(found.values())
    raise ConfigError(
        f"reasoning_gym task {config.task} gave {len(found)} distinct problems, but "
        f"eval.prompts = {count}; lower it, or widen the task with data.task_config"
    )


def _task_rows(config: DataConfig, *, seed: int, size: int) -> Iterator[Row]:
    import reasoning_gym  # noqa: PLC0415  # takes a second to import; only this source needs it
    from reasoning_gym.factory import DATASETS  # noqa: PLC0415

    if config.task not in DATASETS:
        near = [name for name in sorted(DATASETS) if config.task.split("_")[0] in name]
        raise ConfigError(
            f"reasoning_gym has no task {config.task!r}; "
            + (f"near it: {', '.join(near)}" if near else f"it has {len(DATASETS)}")
        )
    try:
        dataset = reasoning_gym.create_dataset(
            config.task, seed=seed, size=size, **config.task_config
        )
    except (TypeError, ValueError, AssertionError) as error:
        raise ConfigError(
            f"data.task_config does not fit reasoning_gym task {config.task}: {error}"
        ) from error
    for entry in dataset:
        yield {
            **entry.get("metadata", {}),
            "question": entry["question"],
            "answer": entry["answer"],
        }


def hub_rows(name: str, subset: str, split: str) -> list[Row]:
    """Rows of a data set of the hub, or of a local folder; raises as `load_hub`."""
    return list(load_hub(name, subset, split))
