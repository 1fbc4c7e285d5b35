"""Mixtures of sources, and rows that stay on disk: the same problems in the same order."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.data.mixture import BLOCK, Mixture
from assay.trainer.data.problems import DiskProblems, load_problems
from assay.trainer.data.streaming import DiskRows
from assay.trainer.rollouts.prompts import PromptStream
from assay.trainer.settings import config as configs

A = [{"question": f"a{n}", "answer": str(n)} for n in range(40)]
B = [{"problem": f"b{n}", "solution": f"so #### {n}", "task": "own"} for n in range(30)]


def jsonl(path: Path, rows: Sequence[dict[str, Any]], between: str = "") -> str:
    text = "".join(f"{json.dumps(row)}\n{between}" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return str(path)


def parquet(path: Path, rows: list[dict[str, Any]]) -> str:
    import datasets

    datasets.Dataset.from_list(rows).to_parquet(str(path))
    return str(path)


def data(**settings: Any) -> Any:
    return configs.build({"data": settings}, origin="test").data


@pytest.fixture
def mixed(tmp_path: Path) -> dict[str, Any]:
    return {
        "source": "mixture",
        "template": "{question}!",
        "mixture": [
            {"task": "a", "weight": 3, "path": jsonl(tmp_path / "a.jsonl", A)},
            {
                "task": "b",
                "path": jsonl(tmp_path / "b.jsonl.gz", B),
                "reference_pattern": "#### (.+)",
                "template": "{question}?",
            },
        ],
    }


def test_a_mixture_holds_out_and_draws_by_weight(mixed: dict[str, Any]) -> None:
    problems = load_problems(data(**mixed), eval_prompts=8)
    assert Counter(one.question[0] for one in problems.eval) == {"a": 6, "b": 2}
    assert problems.mixture == ((34, 3.0), (28, 1.0))
    assert len(problems.train) == 62
    assert len({one.id for one in (*problems.train, *problems.eval)}) == 70
    assert not {p.question for p in problems.train} & {p.question for p in problems.eval}
    first, last = problems.train[0], problems.train[-1]
    assert (first.task, first.messages[-1][1][-1]) == ("a", "!")
    assert (last.task, last.messages[-1][1][-1]) == ("own", "?")
    assert last.reference == last.question[1:]
    origin = problems.origin
    assert origin is not None
    assert (origin.rows, origin.train, origin.eval) == (70, 62, 8)
    assert origin.name.startswith("a (3: ")
    mixture = Mixture(problems.mixture, 0)
    stream = PromptStream(problems.train, lambda _p: (1,), seed=0, mixture=mixture)
    drawn = [draw.problem.question[0] for draw in stream.take(BLOCK)]
    assert Counter(drawn) == {"a": 750, "b": 250}
    assert len({tuple(drawn[n : n + 4]) for n in range(0, BLOCK, 4)}) > 4  # in no fixed turn


def test_a_mixture_is_resumed_where_it_was(mixed: dict[str, Any]) -> None:
    def stream(weights: tuple[float, float] = (3.0, 1.0)) -> PromptStream:
        problems = load_problems(data(**mixed), eval_prompts=8)
        sizes = [size for size, _ in problems.mixture]
        mixture = Mixture(list(zip(sizes, weights, strict=True)), 0)
        return PromptStream(problems.train, lambda _p: (1,), seed=0, mixture=mixture)

    whole = [draw.problem.id for draw in stream().take(1500)]
    first = stream()
    assert [draw.problem.id for draw in first.take(1100)] == whole[:1100]
    later = stream()
    later.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert [draw.problem.id for draw in later.take(400)] == whole[1100:]
    with pytest.raises(ConfigError, match="made with other training data"):
        stream((1.0, 1.0)).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mixture": []}, "data.mixture is empty"),
        ({"source": "jsonl", "path": "x"}, "data.mixture = "),
        ({"selection": {"name": "dump"}}, "would not keep the weights of data.mixture"),
    ],
)
def test_a_wrong_mixture_is_said(mixed: dict[str, Any], change: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        data(**{**mixed, **change})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "a"}, "two sources of the task 'a'"),
        ({"name": "x/y"}, "b needs path, a file, or name"),
        ({"path": ""}, "b needs path, a file, or name"),
        ({"weight": 0}, "expected greater than 0"),
    ],
)
def test_a_wrong_source_is_said(mixed: dict[str, Any], change: Any, message: str) -> None:
    mixed["mixture"][1] |= change
    with pytest.raises(ConfigError) as caught:
        data(**mixed)
    assert message in str(caught.value)


def test_selectors_weigh_the_tasks_of_a_mixture_without_weights(mixed: dict[str, Any]) -> None:
    from assay.trainer.selection.choose import make_selector

    mixed["mixture"][0]["weight"] = 1.0
    given = data(**mixed, selection={"name": "dump"})
    problems = load_problems(given, eval_prompts=0)
    selector: Any = make_selector(given.selection, problems.train, 0)
    assert selector.names == ["a", "own"]


@pytest.mark.parametrize("kind", ["rows.jsonl", "rows.jsonl.gz", "rows.parquet"])
def test_rows_on_disk_are_the_same_problems(tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    given = parquet(path, A) if path.suffix == ".parquet" else jsonl(path, A, "\n")
    there = load_problems(data(source="jsonl", path=given, seed=3), eval_prompts=5)
    lazy = load_problems(data(source="jsonl", path=given, seed=3, streaming=True), eval_prompts=5)
    assert isinstance(lazy.train, DiskProblems)
    assert list(lazy.train) == list(there.train)
    assert lazy.eval == there.eval
    assert lazy.origin == there.origin
    assert lazy.train[-1] == there.train[-1]
    assert lazy.train[2:4] == list(there.train[2:4])
    streams = [PromptStream(one.train, lambda _p: (1,), seed=1) for one in (there, lazy)]
    drawn = [[draw.problem for draw in stream.take(90)] for stream in streams]
    assert drawn[0] == drawn[1]
    assert streams[0].state_dict() == streams[1].state_dict()


def test_a_streamed_mixture_is_that_in_memory(mixed: dict[str, Any]) -> None:
    there = load_problems(data(**mixed), eval_prompts=8)
    lazy = load_problems(data(**mixed, streaming=True), eval_prompts=8)
    assert list(lazy.train) == list(there.train)
    assert lazy.train[40:] == list(there.train[40:])
    assert (lazy.eval, lazy.mixture, lazy.origin) == (there.eval, there.mixture, there.origin)


def test_a_question_that_is_held_out_trains_in_no_source(tmp_path: Path) -> None:
    same = jsonl(tmp_path / "a.jsonl", A), jsonl(tmp_path / "b.jsonl", A)
    sources = [{"task": task, "path": path} for task, path in zip("ab", same, strict=True)]
    for streaming in (False, True):
        problems = load_problems(
            data(source="mixture", mixture=sources, streaming=streaming), eval_prompts=10
        )
        held_out = {one.question for one in problems.eval}
        assert len(problems.eval) == 10
        assert not held_out & {one.question for one in problems.train}
        assert [size for size, _ in problems.mixture] == [40 - len(held_out)] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"question": "1", "answer": "1"}\n\n{"question"', "line 3: not valid JSON"),
        ('{"question": "1", "answer": "1"}\n[]\n', "line 2: expected a JSON object, got list"),
        ('{"question": "1", "answer": "1"}\n{"question": "2"}\n', "no column 'answer'"),
        ("", "holds no rows"),
    ],
)
def test_every_row_on_disk_is_checked(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_problems(data(source="jsonl", path=str(path), streaming=True), eval_prompts=0)
    assert message in str(caught.value)
    with pytest.raises(ConfigError, match="does not exist"):
        load_problems(data(source="jsonl", path="absent.jsonl", streaming=True), eval_prompts=0)


def test_rows_on_disk_take_a_few_bytes_each(tmp_path: Path) -> None:
    import tracemalloc

    long = [{"question": f"q{n}", "answer": str(n), "pad": "x" * 4000} for n in range(2000)]
    path = Path(jsonl(tmp_path / "rows.jsonl", long))
    del long
    tracemalloc.start()
    try:
        rows = DiskRows(path)
        assert rows[1999]["answer"] == "1999"
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(rows) == 2000
    assert held < 200_000 < path.stat().st_size / 10


@pytest.mark.data
def test_dapo_math_17k_streams_from_its_file(shared_data: Path) -> None:
    path = shared_data / "dapo_math_17k.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is absent")
    told = [f"data.path={path}", "data.source=jsonl", "over=data/dapo-math-17k"]
    given = configs.load(Path("dapo"), told, say=lambda _line: None)
    assert given.data.streaming
    problems = load_problems(given.data, eval_prompts=given.eval.prompts)
    assert isinstance(problems.train, DiskProblems)
    assert len(problems.train) == 17267
    assert all(str(one.reference).lstrip("-").isdigit() for one in problems.train[:200])
    assert "\\boxed{}" in problems.train[0].messages[-1][1]
