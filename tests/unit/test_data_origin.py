"""Which data a run has: the columns that their names give, and what is told of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.data.columns import found_columns
from assay.trainer.data.origin import DataOrigin
from assay.trainer.data.problems import load_problems
from assay.trainer.records.folder import create, record, recorded_data
from assay.trainer.settings import config as configs


def write(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def origin_of(path: Path, *overrides: str, held_out: int = 0) -> DataOrigin:
    config = configs.build({}, [f"data={path}", *overrides], origin="t")
    found = load_problems(config.data, eval_prompts=held_out).origin
    assert found is not None
    return found


@pytest.mark.parametrize("prompt", ["prompt", "question", "problem"])
@pytest.mark.parametrize("reference", ["reference", "answer", "solution", "ground_truth"])
def test_columns_are_found_by_their_names(tmp_path: Path, prompt: str, reference: str) -> None:
    found = origin_of(write(tmp_path / "rows.jsonl", {prompt: "1+1=", reference: "2", "id": 3}))
    assert (found.prompt, found.reference) == (prompt, reference)
    assert f'prompt in "{prompt}" (by its name), reference in "{reference}" (by its' in found.line
    named = [f"data.columns.prompt={prompt}", f"data.columns.reference={reference}"]
    assert "by its name" not in origin_of(tmp_path / "rows.jsonl", *named).line


@pytest.mark.parametrize(
    ("row", "overrides", "message"),
    [
        ({"question": 1, "problem": 2, "answer": 3}, [], "'question' and 'problem' may both be"),
        ({"question": 1, "answer": 2, "solution": 3}, [], "with data.columns.reference, such as"),
        ({"q": 1, "answer": 2}, [], "no column for the prompt: none is named prompt, question, p"),
        ({"question": 1}, [], "name it with data.columns.reference; there are: question"),
    ],
)
def test_columns_that_cannot_be_told_are_named_with_the_key(
    row: dict[str, Any], overrides: list[str], message: str
) -> None:
    config = configs.build({}, ["data=rows.jsonl", *overrides], origin="t").data
    with pytest.raises(ConfigError, match=r"^here: ") as caught:
        found_columns(config, [row], "here")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("row", "overrides", "reference"),
    [
        ({"question": 1, "answer": 2, "solution": 3}, ["solution=solution"], "answer"),
        ({"question": 1, "answer": 2}, ["anchor=answer"], "answer"),
        ({"question": 1, "answer": 2, "tests": []}, ["tests=tests"], ""),
        ({"question": 1, "answer": 2, "solution": 3}, ["reference=solution"], "solution"),
    ],
)
def test_a_column_of_another_key_counts_last(
    row: dict[str, Any], overrides: list[str], reference: str
) -> None:
    texts = ["data=rows.jsonl", *(f"data.columns.{one}" for one in overrides)]
    config = configs.build({}, texts, origin="t").data
    assert found_columns(config, [row], "here").reference == reference


def test_what_is_told_of_a_file(tmp_path: Path) -> None:
    path = write(
        tmp_path / "rows.jsonl",
        *({"question": f"{n} " + "x" * 200, "answer": str(n)} for n in range(5)),
    )
    other = write(tmp_path / "eval.jsonl", {"question": "e", "answer": "1"})
    found = origin_of(path, f"data.eval_path={other}", "data.max_rows=3", held_out=1)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.digest == f"sha256:{digest}"
    assert (found.rows, found.train, found.eval) == (5, 3, 1)
    assert len(found.example["prompt"]) == 100
    assert found.line.startswith(f"jsonl {path}, 5 rows (3 to train on, 1 held out), prompt in ")
    assert found.line.endswith(f", sha256 {digest[:12]}")
    assert found.evaluation == {
        "name": str(other),
        "rows": 1,
        "digest": f"sha256:{hashlib.sha256(other.read_bytes()).hexdigest()}",
    }
    assert any(line.startswith("evaluation: ") for line in found.lines)
    assert json.loads(json.dumps(found.to_json())) == found.to_json()


def test_what_is_told_of_a_task_and_of_a_data_set(tmp_path: Path) -> None:
    def task(seed: int) -> DataOrigin:
        config = configs.build({"data": {"size": 5, "seed": seed}}, origin="t").data
        found = load_problems(config, eval_prompts=2).origin
        assert found is not None
        return found

    assert (task(0).source, task(0).name) == ("reasoning_gym", "chain_sum")
    assert task(0).digest == task(0).digest != task(1).digest
    folder = tmp_path / "set"
    folder.mkdir()
    write(folder / "train.jsonl", {"problem": "q", "answer": "1"})
    found = origin_of(folder)
    assert (found.source, found.name) == ("hub", f"{folder} train")
    assert found.digest.startswith("fingerprint:")


def test_other_rows_than_a_run_began_with_are_seen(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", {"question": "q", "answer": "1"})
    config = configs.build({}, [f"data={path}"], origin="t")
    before = origin_of(path)
    folder = create(config, "x", tmp_path / "run")
    assert recorded_data(folder) is None
    record(folder, config, data=before.to_json())
    assert recorded_data(folder) == before.to_json()
    assert not origin_of(path).differs_from(before.to_json())
    write(path, {"question": "q", "answer": "2"})
    assert "has other rows than this run began with: sha256 " in origin_of(path).differs_from(
        before.to_json()
    )


def test_the_record_of_a_run_of_before_says_nothing_of_its_data(tmp_path: Path) -> None:
    config = configs.build({}, origin="t")
    folder = create(config, "x", tmp_path / "run")
    record(folder, config)
    assert recorded_data(folder) is None
