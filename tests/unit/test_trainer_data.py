"""Prompts and references: what each source gives, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problem, load_problems, render
from assay.trainer.settings import config

ROWS = [{"question": f"q{n}", "answer": str(n)} for n in range(10)]


def data(**settings: Any) -> config.DataConfig:
    return config.build({"data": settings}, origin="test").data


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_generated_problems_share_no_question_with_the_evaluation() -> None:
    settings = data(
        task="chain_sum",
        task_config={"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1},
        size=300,
    )
    problems = load_problems(settings, eval_prompts=60)
    held_out = [problem.question for problem in problems.eval]
    assert len(set(held_out)) == len(held_out) == 60
    assert not set(held_out) & {problem.question for problem in problems.train}
    assert 0 < len(problems.train) < 300
    assert problems == load_problems(settings, eval_prompts=60)
    assert (
        len({problem.id for problem in (*problems.train, *problems.eval)})
        == len(problems.train) + 60
    )


def test_a_template_may_use_the_metadata_of_a_task() -> None:
    settings = data(task="chain_sum", template="What is {expression}?", system="Be brief.", size=3,
                    examples=[{"user": "What is 1 + 1?", "assistant": "2"}])  # fmt: skip
    problem = load_problems(settings, eval_prompts=0).train[0]
    assert problem.messages[:3] == (
        ("system", "Be brief."),
        ("user", "What is 1 + 1?"),
        ("assistant", "2"),
    )
    assert problem.messages[3][1].startswith("What is ")
    assert problem.question.startswith("State the final answer")


def test_rows_of_a_file_are_split(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(json.dumps(row) for row in ROWS) + "\n\n")
    problems = load_problems(data(source="jsonl", path=str(path)), eval_prompts=3)
    assert len(problems.eval) == 3
    assert sorted(p.reference for p in (*problems.train, *problems.eval)) == [
        str(n) for n in range(10)
    ]
    assert (
        len(load_problems(data(source="jsonl", path=str(path), max_rows=2), eval_prompts=3).train)
        == 2
    )


def test_a_file_of_its_own_for_the_evaluation(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", ROWS)
    other = write(
        tmp_path / "other.jsonl",
        [{"question": "q3", "answer": ["3", "three"]}, {"question": "new", "answer": 7}],
    )
    problems = load_problems(
        data(source="jsonl", path=str(path), eval_path=str(other)), eval_prompts=2
    )
    assert [problem.reference for problem in problems.eval] == [("3", "three"), "7"]
    assert "q3" not in {problem.question for problem in problems.train}
    assert len(problems.train) == 9


def test_the_reference_is_taken_out_of_a_solution(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.jsonl", [{"question": "q", "answer": "so 2+2=4\n#### 4 "}])
    settings = data(source="jsonl", path=str(path), reference_pattern="#### (.+)")
    assert load_problems(settings, eval_prompts=0).train[0].reference == "4"


def test_a_data_set_of_the_hub_s_kind(tmp_path: Path) -> None:
    """datasets.load_dataset takes a local folder as it takes a name."""
    folder = tmp_path / "set"
    folder.mkdir()
    write(folder / "train.jsonl", ROWS)
    write(folder / "test.jsonl", [{"question": "t", "answer": "1"}])
    settings = data(source="hub", name=str(folder), eval_split="test")
    problems = load_problems(settings, eval_prompts=1)
    assert len(problems.train) == 10
    assert problems.eval[0].question == "t"


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([], {}, "holds no rows"),
        (
            [{"q": "a", "answer": "1"}],
            {},
            r"no column for the prompt: none is named prompt, question, problem; .*: q, answer",
        ),
        (
            [{"q": "a", "answer": "1"}],
            {"columns": {"prompt": "question"}},
            r"row 1: no column 'question' for the prompt \(data.columns.prompt\); it has: q, a",
        ),
        (
            [*ROWS, {"question": "x", "ground_truth": "1"}],
            {},
            r"'answer' and 'ground_truth' may both be the reference; name one with data.columns.re",
        ),
        (
            [*ROWS, {"question": "x", "answer": None}],
            {},
            r"row 11: column 'answer' is empty; every problem needs a reference",
        ),
        ([*ROWS, {"question": "", "answer": "1"}], {}, r"row 11: column 'question' is empty"),
        (
            ROWS,
            {"template": "{problem}"},
            r"data.template names {problem}; known here: question, answer",
        ),
        (ROWS, {"template": "{"}, r"data.template is not valid"),
        (ROWS, {"reference_pattern": "#### (.+)"}, r"finds no group in it"),
        (ROWS, {"reference_pattern": "("}, r"is not a regular expression"),
    ],
)
def test_rows_that_cannot_be_used_are_named(
    tmp_path: Path, rows: list[dict[str, Any]], settings: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "rows.jsonl", rows)
    with pytest.raises(ConfigError, match=message):
        load_problems(data(source="jsonl", path=str(path), **settings), eval_prompts=0)


@pytest.mark.parametrize(
    ("settings", "eval_prompts", "message"),
    [
        ({"task": "chain_sums"}, 0, "has no task 'chain_sums'; near it: .*chain_sum"),
        (
            {"task": "chain_sum", "task_config": {"terms": 2}},
            0,
            "data.task_config does not fit reasoning_gym task chain_sum",
        ),
        ({"task": "chain_sum", "task_config": {"min_terms": 9, "max_terms": 2}}, 0, "does not fit"),
        (
            {
                "task": "chain_sum",
                "task_config": {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1},
            },
            500,
            r"gave \d+ distinct problems, but eval.prompts = 500; lower it",
        ),
    ],
)
def test_tasks_that_cannot_be_used(
    settings: dict[str, Any], eval_prompts: int, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_problems(data(**settings), eval_prompts=eval_prompts)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    def problem_of(path: Path, eval_prompts: int = 0) -> str:
        with pytest.raises(ConfigError) as caught:
            load_problems(data(source="jsonl", path=str(path)), eval_prompts=eval_prompts)
        return str(caught.value)

    assert "does not exist" in problem_of(tmp_path / "absent.jsonl")
    path = tmp_path / "rows.jsonl"
    path.write_text('{"question": 1}\n{oops\n')
    assert "line 2: not valid JSON" in problem_of(path)
    path.write_text("[1]\n")
    assert "line 1: expected a JSON object, got list" in problem_of(path)
    write(path, ROWS)
    assert "gives 10 rows for the evaluation, but eval.prompts = 11" in problem_of(path, 11)
    assert "leaves no training problems" in problem_of(path, 10)
    cut = tmp_path / "cut.jsonl.gz"
    cut.write_bytes(gzip.compress(path.read_bytes())[:-9])
    assert "cannot be read" in problem_of(cut)
    with pytest.raises(ConfigError, match=r"cannot be loaded: .*check the name"):
        load_problems(data(source="hub", name=str(tmp_path / "absent")), eval_prompts=0)


class Template:
    """A tokenizer as `render` sees it."""

    def __init__(self, *, chat: bool, bos: bool) -> None:
        self.chat_template = "x" if chat else None
        self.bos_token, self.bos_token_id, self._bos = "<s>", 1, bos

    def __call__(self, _text: str) -> dict[str, list[int]]:
        return {"input_ids": [1, 5] if self._bos else [5]}

    def apply_chat_template(self, conversation: Any, **_options: Any) -> str:
        return (
            "<s>"
            + "|".join(f"{part['role']}:{part['content']}" for part in conversation)
            + "|assistant:"
        )


def test_the_begin_of_sequence_is_written_once() -> None:
    problem = Problem("1", "q", (("system", "s"), ("user", "q")), "r")
    assert render(problem, Template(chat=True, bos=True)) == "system:s|user:q|assistant:"
    assert render(problem, Template(chat=True, bos=False)) == "<s>system:s|user:q|assistant:"
    assert render(problem, Template(chat=False, bos=True)) == "s\nq\n"


def test_the_quickstart_never_trains_on_what_it_is_tested_on(repository: Path) -> None:
    from assay.trainer.settings.config import load

    config = load(repository / "configs" / "quickstart.toml")
    problems = load_problems(config.data, eval_prompts=config.eval.prompts)
    held_out = {problem.question for problem in problems.eval}
    assert len(held_out) == config.eval.prompts >= 120
    assert not held_out & {problem.question for problem in problems.train}
    assert len({problem.question for problem in problems.train}) > 120
    for problem in problems.eval:
        expression = problem.question.removeprefix("Calculate ").removesuffix(".")
        left, sign, right = expression.split()
        value = {"+": int.__add__, "*": int.__mul__}[sign](int(left), int(right))
        assert problem.reference == str(value)
        assert problem.messages[-1][1] == f"Calculate {expression}."
