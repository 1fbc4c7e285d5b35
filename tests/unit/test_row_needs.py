"""What rows must have: an environment says so, and the loader and `assay validate` ask for that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.search_support import corpus_file, play

from assay.cli.commands.validate import validate
from assay.environments.environment import lacking
from assay.environments.registry import environment_of, settings_of
from assay.kit.errors import ConfigError
from assay.trainer.data.problems import Problems, load_problems
from assay.trainer.methods.episodes.talk import row_of
from assay.trainer.settings import config as configs
from assay.trainer.settings.method import RowNeeds
from assay.trainer.settings.registry import row_needs

SHIPPED = {
    "python": ("prompt", "reference"),
    "bash": ("prompt", "reference"),
    "repository": ("prompt", "tests"),
    "harbor": ("task|task_files",),
    "search": ("prompt", "reference"),
    "search-self-play": ("reference",),
    "user": ("user",),
    "spy": ("words",),
    "trace": ("messages",),
}
GAMES = [{"words": ["harp", "lute"], "seed": n} for n in range(6)]


def loaded(
    path: Path, rows: list[Any], environment: str, *more: str, held_out: int = 0
) -> Problems:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    overrides = [f"data={path}", f"method.episodes.environment={environment}"]
    config = configs.build({}, overrides, origin="t")
    return load_problems(config.data, eval_prompts=held_out, needs=row_needs(config))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_rows_of_its_proofs_have_what_an_environment_needs(name: str, tmp_path: Path) -> None:
    kind = environment_of(name)
    corpus = {"corpus": str(corpus_file(tmp_path))} if name.startswith("search") else {}
    proofs = kind.proofs(settings_of(kind, corpus))
    assert proofs
    assert kind.needs == SHIPPED[name]
    for proof in proofs:
        assert not lacking(kind.needs, proof.row)
        for need in kind.needs:
            without = {k: v for k, v in proof.row.items() if k not in need.split("|")}
            assert lacking(kind.needs, without) == need


def test_rows_without_prompt_and_reference_are_problems_of_their_own(tmp_path: Path) -> None:
    found = loaded(tmp_path / "rows.jsonl", GAMES, "spy", held_out=2)
    assert (len(found.train), len(found.eval)) == (4, 2)
    rows = [row_of(problem) for problem in (*found.train, *found.eval)]
    assert sorted(row["seed"] for row in rows) == list(range(6))
    assert not any("prompt" in row or "reference" in row for row in rows)
    kind = environment_of("spy")
    clues = [f"<clue>strings {n}</clue>" for n in range(3)]
    turns = [*clues, "<vote>1</vote>", "<vote>1</vote>"]
    assert play(kind(), rows[0], turns).outcome.result.fault is None
    assert found.origin is not None
    assert "prompt in" not in found.origin.line
    assert found.origin.lines[-1].startswith('for example: {"words": ["harp", "lute"], "seed": ')


def test_the_same_row_is_not_trained_on_and_held_out(tmp_path: Path) -> None:
    found = loaded(tmp_path / "rows.jsonl", [*GAMES, GAMES[0]], "spy", held_out=3)
    held_out = {problem.asked for problem in found.eval}
    assert not held_out & {problem.asked for problem in found.train}


def test_what_a_row_has_reaches_the_environment(tmp_path: Path) -> None:
    talk = {"user": {"goal": "x"}, "question": "Hello?", "answer": "42", "solution": "s"}
    (problem,) = loaded(tmp_path / "rows.jsonl", [talk], "user").train
    assert problem.question == "Hello?"  # by one of its usual names
    assert row_of(problem) == {
        "prompt": "Hello?", "user": {"goal": "x"}, "answer": "42", "solution": "s", "task": "",
    }  # fmt: skip
    blank = {**talk, "prompt": "", "reference": None}
    (problem,) = loaded(tmp_path / "rows.jsonl", [blank], "user").train
    assert "prompt" not in row_of(problem)
    assert "reference" not in row_of(problem)
    named = {"user": {"goal": "x"}, "reference": ["a", "b"]}
    (problem,) = loaded(tmp_path / "rows.jsonl", [named], "user").train
    assert row_of(problem)["reference"] == ["a", "b"]


def test_an_answer_alone_is_a_row_of_search_self_play(repository: Path, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"answer": "Paris"}\n')
    config = configs.load(repository / "configs" / "search_self_play.toml", [f"data={path}"])
    (problem,) = load_problems(config.data, eval_prompts=0, needs=row_needs(config)).train
    assert (problem.question, problem.reference) == ("", "Paris")


@pytest.mark.parametrize(
    ("environment", "row", "message"),
    [
        ("spy", {"prompt": "p", "answer": "r"}, "row 1: 'words' is missing or empty, which"),
        ("spy", {"prompt": "p", "answer": "r"}, "environment 'spy' needs; it has: prompt, answer"),
        ("spy", {"words": []}, "'words' is missing or empty"),
        ("user", {"prompt": "p"}, "'user' is missing or empty, which the environment 'user' needs"),
        ("harbor", {"prompt": "p"}, "'task' or 'task_files' is missing or empty"),
        ("repository", {"prompt": "p"}, "'tests' is missing or empty"),
        ("repository", {"tests": [1]}, "no column for the prompt"),
        ("search", {"prompt": "p"}, "no column for the reference"),
        ("search-self-play", {"reference": ""}, "'reference' is empty; the environment"),
    ],
)  # fmt: skip
def test_a_row_that_lacks_it_is_named(
    environment: str, row: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path / "rows.jsonl", [row], environment)
    assert message in str(caught.value)


def test_an_environment_of_one_s_own_says_what_it_needs(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from assay.environments import Environment\n"
        "class Plain(Environment): pass\n"
        "class Own(Environment):\n"
        "    needs = ('answer', 'a|b')\n"
    )
    rows = tmp_path / "rows.jsonl"
    (problem,) = loaded(rows, [{"answer": 4, "b": 1}], f"{file}:Own").train
    assert row_of(problem) == {"answer": 4, "b": 1, "task": ""}
    with pytest.raises(ConfigError, match=r"'a' or 'b' is missing.*environment '.*own.py:Own'"):
        loaded(rows, [{"answer": 4}], f"{file}:Own")
    with pytest.raises(ConfigError, match="no column for the reference"):
        loaded(rows, [{"prompt": "p"}], f"{file}:Plain")


def test_without_an_environment_rows_need_what_they_did() -> None:
    assert row_needs(configs.build({}, origin="t")) == RowNeeds(("prompt", "reference"))


def test_validate_lists_the_rows_that_lack_it(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"words": ["a", "b"]}\n\n{"words": null}\n{"q": 1, "answer": "x"}\n')

    def said(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(validate, [str(path), *arguments], standalone_mode=False)
        return done.return_value, done.output

    code, text = said("--environment", "spy")
    assert code == 1
    assert "line 3: 'words' is missing or empty\nline 4: 'words'" in text
    assert "1 of 3 rows have what spy needs" in text
    assert said("--environment", "spy", "--bound", "0.3")[0] == 0
    code, text = said("--environment", "search", "--prompt-key", "q", "--reference-key", "answer")
    assert "1 of 3 rows" in text
    with pytest.raises(Exception, match="--verifier, or --environment"):
        CliRunner().invoke(validate, [str(path)], standalone_mode=False, catch_exceptions=False)
