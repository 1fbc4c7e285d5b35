"""Rows in Parquet: every value comes back, and the columns that cannot hold theirs are named."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.cli.scoring.files import lines_of, pack_of
from assay.kit.errors import ConfigError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def there_and_back(rows: list[dict[str, Any]], folder: Path) -> list[dict[str, Any]]:
    plain, packed = folder / "a.jsonl", folder / "a.parquet"
    plain.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pack = pack_of(packed)
    assert pack is not None
    with plain.open("rb") as file:
        texts = pack(file, packed)
    back = [json.loads(line) for _, line in lines_of(packed, "a")]
    for row in back:
        for name in texts:
            row[name] = None if row[name] is None else json.loads(row[name])
    return back


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=4)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
    max_leaves=5,
)  # fmt: skip


@given(st.lists(st.fixed_dictionaries({"x": values, "y": values}), min_size=1, max_size=6))
def test_every_value_comes_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    assert there_and_back(rows, tmp_path_factory.mktemp("form")) == rows


def test_types_may_differ_between_chunks(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"x": None, "y": 1, "z": "a"} for _ in range(3000)]
    rows += [{"x": ["a"], "y": 0.5, "z": ["a"], "late": {"k": 1}} for _ in range(3000)]
    back = there_and_back(rows, tmp_path)
    assert back == [{"late": None, **row} for row in rows]


def test_what_json_has_no_type_for_is_a_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    row = {"day": dt.date(2026, 1, 2), "raw": b"\x00", "sum": Decimal("1.50")}
    pq.write_table(pa.Table.from_pylist([row]), path)
    ((number, line),) = lines_of(path, "a")
    assert number == 1
    assert json.loads(line) == {"day": "2026-01-02", "raw": "AA==", "sum": "1.50"}


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    plain = tmp_path / "a.jsonl"
    plain.write_text("{}\n" * 50_000)
    pack = pack_of(path)
    assert pack is not None
    with plain.open("rb") as file:
        assert pack(file, path) == []
    assert sum(1 for _ in lines_of(path, "a")) == 50_000
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ConfigError, match="mine is not a whole zstd file"):
        list(lines_of(path, "mine"))
