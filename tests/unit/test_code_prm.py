"""Process supervision for code by one command: problems, rows, settings, and what is skipped."""

from __future__ import annotations

import io
import json
import random
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from experiments.code_prm.programs import (
    LONG,
    SHORT,
    WORDS,
    Programs,
    asked_letters,
    feasible,
    oracle_lines,
    passes,
)
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.clients.rows.tests import read_tests
from assay.kit.errors import ConfigError
from assay.kit.runs.progress import Display
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.code_prm import config as configs
from assay.trainer.recipes.code_prm import stages
from assay.trainer.recipes.code_prm.commands import code_prm
from assay.trainer.recipes.code_prm.problems import FAMILIES, append_problem, generate
from assay.trainer.recipes.code_prm.rows import label_summary, prm_rows, program_rows
from assay.trainer.recipes.code_prm.running import Pipeline, as_text
from assay.trainer.recipes.code_prm.stages import STAGES, Paths
from assay.trainer.settings import config as train_configs
from assay.trainer.settings.registry import parts_on


def holds(program: str, asserts: list[str]) -> bool:
    """Whether assertions hold, by Python itself; the programs are ours."""
    scope: dict[str, Any] = {}
    try:
        exec(program, scope)
        for text in asserts:
            exec(text, scope)
    except Exception:  # noqa: BLE001  # programs of a policy raise anything
        return False
    return True


@pytest.mark.parametrize("family", FAMILIES)
def test_solutions_satisfy_their_tests_and_lack_no_line(family: str) -> None:
    rows = generate((family,), 30, 1, "\nIn Python.")
    assert len({row["question"] for row in rows}) == 30
    for row in rows:
        read_tests(row["tests"])
        assert row["question"].endswith("\nIn Python.")
        asserts, lines = row["tests"]["asserts"], row["solution"].splitlines(keepends=True)
        assert holds(row["solution"], asserts)
        assert not holds("".join(lines[:-1]), asserts)
    assert rows == generate((family,), 30, 1, "\nIn Python.")
    assert rows != generate((family,), 30, 2, "\nIn Python.")


@pytest.mark.slow
def test_problems_that_run_out_say_so() -> None:
    with pytest.raises(ValueError, match="fewer than 5000 problems"):
        generate(("select",), 5000, 0)


@given(st.integers(0, 10**6), st.sampled_from((SHORT, LONG)))
def test_the_oracle_of_the_miniature_is_pythons(seed: int, kind: Programs) -> None:
    """A program passes where Python says so; a beginning is feasible where the rest of the right
    program completes it."""
    question, program = kind.draw(random.Random(seed))
    letters = asked_letters(question)
    asked, solution, asserts = append_problem(letters)
    assert asked == question
    assert passes(question, program) == holds(program, asserts)
    lines = program.splitlines(keepends=True)
    length = oracle_lines(question, lines)
    assert all(feasible(question, lines[:n]) == (n <= length) for n in range(len(lines) + 1))
    put = sum("+" in line for line in lines[:length])
    head = "".join(lines[:length]) or solution.partition("\n")[0] + "\n"
    rest = "".join(solution.splitlines(keepends=True)[1 + put :])
    assert holds(head + rest, asserts)
    assert "".join(word for word in WORDS if word in solution)


@pytest.mark.parametrize("kind", [SHORT, LONG])
def test_one_program_in_five_is_right_before_training(kind: Programs) -> None:
    dice = random.Random(0)
    drawn = [kind.draw(dice) for _ in range(2000)]
    assert 0.15 < sum(passes(*one) for one in drawn) / len(drawn) < 0.25
    # A line that appends is three tokens, any other one, and one ends the program.
    tokens = [program.count("\n") + 2 * program.count("+") + 1 for _, program in drawn]
    assert sum(count > kind.limit for count in tokens) / len(drawn) < 0.01


def sample(question: str, response: str) -> dict[str, Any]:
    return {"question": question, "response": response, "tests": {}, "checkpoint": 4}


def test_equal_responses_to_a_problem_are_labelled_once() -> None:
    samples = [sample("a", "x"), sample("a", "x"), sample("b", "x"), sample("b", " \n")]
    rows = program_rows(samples, language="python", extraction="last")
    assert [(row["question"], row["language"]) for row in rows] == [
        ("a", "python"),
        ("b", "python"),
    ]
    assert all("extraction" not in row for row in rows)
    assert program_rows(samples, language="python", extraction="whole")[0]["extraction"] == "whole"


def labelled(feasible_lines: int, *, passed: bool) -> dict[str, Any]:
    found = {"id": "1", "prompt": [{"role": "system", "content": "s"}], "question": "q"}
    cost = {"calls": 2, "completions": 40, "executions": 9, "tokens": 100}
    labels = [0] + [1] * feasible_lines + [-1] * (2 - feasible_lines)
    steps = ["```\n", "a\n", "b\n"]
    return {**found, "steps": steps, "labels": labels, "feasible_lines": feasible_lines,
            "passed": passed, **cost}  # fmt: skip


@pytest.mark.parametrize(("keep", "count"), [("full", 3), ("remove-hard", 2), ("revised-only", 1)])
def test_what_the_prm_learns_from(keep: Any, count: int) -> None:
    rows = [labelled(2, passed=True), labelled(1, passed=False), labelled(0, passed=False)]
    kept = prm_rows(rows, keep)
    assert len(kept) == count
    assert all(row["prompt"] == "q" for row in kept), "a judgement's item has the bare question"
    told = label_summary(rows)
    assert (told["programs"], told["passed"], told["completions"]) == (3, 1, 120)
    assert (told["right"], told["wrong"], told["neutral"]) == (3, 3, 3)


FILE = "configs/pipelines/code_prm.toml"


def plan_of(repository: Path, folder: Path, *overrides: str) -> configs.PipelinePlan:
    return configs.load(repository / FILE, overrides, folder)


def test_both_runs_start_alike_and_differ_in_what_is_compared(
    repository: Path, tmp_path: Path
) -> None:
    plan = plan_of(repository, tmp_path, "start.policy=org/model", "start.seed=3")
    baseline, dense = plan.baseline, plan.dense
    assert {config.model.name for config in (baseline, dense)} == {"org/model"}
    assert (baseline.data, baseline.rollout, baseline.optim) == (
        dense.data,
        dense.rollout,
        dense.optim,
    )
    assert {config.run.seed for config in (baseline, dense)} == {3}
    assert baseline.reward.verifier == "code"
    assert dense.reward.verifier == "code-prm"
    assert baseline.method.critic.init == "policy"
    assert dense.method.critic.init == str(tmp_path / "prm" / "model")
    gone = {part.name for part in parts_on(dense)} - {part.name for part in parts_on(baseline)}
    assert gone == {
        "dense-rewards", "span-normalisation", "neutral-comments", "outcome-weighted-spans",
        "value-init",
    }  # fmt: skip
    assert plan.checkpoints == (20, 40, 60, 80)
    assert baseline.run.checkpoint_every * baseline.updates_per_rollout == 20
    assert baseline.run.keep_checkpoints == 4


def test_guards_are_switched_off_by_themselves(repository: Path, tmp_path: Path) -> None:
    def dense(*overrides: str) -> set[str]:
        return {part.name for part in parts_on(plan_of(repository, tmp_path, *overrides).dense)}

    whole = dense()
    assert whole - dense("guards.neutral_comments=false") == {"neutral-comments"}
    assert whole - dense("guards.span_normalisation=false") == {"span-normalisation"}
    assert whole - dense("start.value_init=false") == {"value-init"}
    bare = plan_of(repository, tmp_path, "guards.neutral_comments=false")
    assert "--label-comments" in stages.label_arguments(bare, Paths(tmp_path), "x:1")
    assert "--label-comments" not in stages.label_arguments(
        plan_of(repository, tmp_path), Paths(tmp_path), "x:1"
    )


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("problems.source=jsonl", r"problems\.path is missing"),
        ("problems.path=rows.jsonl", r"problems\.path is not read"),
        ("samples.checkpoints=3", r"does not divide the 40 steps"),
        ("train.overrides.model.lora.rank=4", r"model\.lora\.rank must be 0"),
        ("train.overrides.method.dense.weight=0.0", r"method\.dense\.weight = 0"),
        ("train.overrides.optim.rate=1", r"\[train\].*optim\.rate"),
        ("train.config=absent.toml", r"absent\.toml does not exist"),
        ("prm.config=absent.toml", r"absent\.toml does not exist"),
        ("labels.keep=some", r"labels\.keep"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(
    repository: Path, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as found:
        plan_of(repository, tmp_path, override)
    assert "\n" not in str(found.value)


def test_the_commands_of_the_stages_can_be_typed(repository: Path, tmp_path: Path) -> None:
    from assay.trainer.recipes.reward_model import config as rm_configs

    plan, paths = plan_of(repository, tmp_path), Paths(tmp_path)
    command, settings, *words = stages.train_arguments(plan.dense, paths, "dense", "host:1")
    assert command == "train"
    assert train_configs.load(Path(settings), words[:1]).reward.target == "host:1"
    command, path, *words = stages.train_rm_arguments(plan, paths)
    assert command == "train-rm"
    read = rm_configs.load(Path(path), words[: words.index("--run-dir")])
    assert (read.method.kind, read.method.loss, read.data.labels) == ("prm", "regression", "signed")
    assert read.data.paths == (str(paths.steps),)
    paths.run("dense").path.mkdir()
    paths.run("dense").config.write_text("")
    resumed = stages.train_arguments(plan.dense, paths, "dense", "host:2")
    assert resumed == ["train", "reward.target=host:2", "--resume", str(tmp_path / "dense")]
    stages.write_models(paths)
    model = tomllib.loads(paths.models.read_text())["model"]["prm"]
    assert model["splitting"] == "code-line"
    assert Path(model["path"]).is_absolute()


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_too_many_programs_without_labels_stop_it(repository: Path, tmp_path: Path) -> None:
    plan, paths = plan_of(repository, tmp_path), Paths(tmp_path)
    write(paths.labels, [labelled(1, passed=False) for _ in range(8)])
    with pytest.raises(ConfigError, match=r"3 of 11 programs have no labels.*tries them again"):
        stages.gather_steps(plan, paths, 3)
    assert not paths.steps.exists(), "a stage that failed is not whole"
    assert stages.gather_steps(plan, paths, 2) == 8
    assert paths.is_whole("labels")
    write(paths.labels, [labelled(2, passed=True)])
    with pytest.raises(ConfigError, match="leaves none of the 1 labelled programs"):
        stages.gather_steps(plan, paths, 0)


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A folder in which every stage was done before."""
    paths = Paths(tmp_path / "pipeline")
    write(paths.labels, [labelled(1, passed=False)])
    for path in (paths.programs, paths.steps, paths.problems / "eval.jsonl", paths.samples(80)):
        write(path, [{"row": 1}])
    write(paths.times, [{"stage": "labels", "seconds": 60.0}, {"stage": "labels", "seconds": 5.0}])
    accuracies = {"baseline": (0.2, 0.3), "prm": None, "dense": (0.2, 0.5)}
    for name, found in accuracies.items():
        report: dict[str, Any] = {"after": {"figures": {"AUC": {"value": 0.9}}}}
        if found is not None:
            report = {"before": {"accuracy": found[0]}, "after": {"accuracy": found[1]}}
        (paths.run(name).path).mkdir(parents=True)
        (paths.run(name).path / "report.json").write_text(json.dumps(report))
    return paths.path


def test_what_is_whole_is_skipped_and_reported(repository: Path, whole: Path) -> None:
    words = [str(repository / FILE), "--dir", str(whole)]
    result = CliRunner().invoke(code_prm, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.output.count("done before") == len(STAGES)
    report = json.loads((whole / "report.json").read_text())
    assert report["accuracy"] == {"start": 0.2, "baseline": 0.3, "dense": 0.5}
    assert report["seconds"] == {"labels": 65.0}, "sessions of a stage add up"
    text = (whole / "report.md").read_text()
    assert text == f"{as_text(report)}\n"
    for said in ("| dense | 0.500 |", "40 completions", "AUC 0.900", "| labels | 1:05 |"):
        assert said in text
    again = [*words, "samples.per_prompt=9"]
    with pytest.raises(ConfigError, match="holds a pipeline of other settings"):
        CliRunner().invoke(code_prm, again, catch_exceptions=False)


def test_a_stage_that_fails_says_which_and_is_not_whole(
    repository: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child is a real one, of a command that is refused."""
    (whole / "steps.jsonl").unlink()
    paths = Paths(whole)
    console = Console(file=io.StringIO(), width=200)
    pipeline = Pipeline(plan_of(repository, whole), paths, Display(console))
    refused: Callable[..., list[str]] = lambda *_: ["train", "--no-such-flag"]  # noqa: E731
    (whole / "dense" / "report.json").unlink()
    with pytest.raises(TrainingStoppedError, match=r"stage dense ended with code 2"):
        pipeline._child("dense", ["assay.cli", *refused()])
    assert not paths.is_whole("dense")
    assert not paths.is_whole("labels")
