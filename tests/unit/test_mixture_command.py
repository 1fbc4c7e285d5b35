"""`assay mixture`: weights from the folders of runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay.cli.main import run as command
from assay.kit.errors import ConfigError
from assay.trainer.core.evaluation import Answer, Evaluation
from assay.trainer.recipes.mixture import Pilot, advise

ITEMS = 200


def answer(number: int, *, right: bool) -> Answer:
    verdict = "correct" if right else "incorrect"
    return Answer(str(number), "q", "1", "", 1, False, verdict, float(right), None)


def written(folder: Path, weights: dict[str, float], score: float) -> str:
    """A run of such weights with such a score on the suite "s"."""
    folder.mkdir()
    sources = [
        f'[[data.mixture]]\ntask = "{task}"\nweight = {weight}\n'
        for task, weight in weights.items()
    ]
    (folder / "config.toml").write_text("\n".join(sources), encoding="utf-8")
    answers = tuple(answer(n, right=n < score * ITEMS) for n in range(ITEMS))
    told = Evaluation((), suites={"s": Evaluation(answers)})
    (folder / "eval_after.json").write_text(json.dumps(told.to_json()), encoding="utf-8")
    return str(folder)


def test_the_command_finds_the_top_of_a_hill_between_the_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """0.8 - (w - 0.6)^2 in the share of the first source: the weights need not sum to 1."""
    runs = [
        written(tmp_path / str(n), {"math": 4 * n, "code": 20 - 4 * n}, 0.8 - (n / 5 - 0.6) ** 2)
        for n in (0.25, 1, 2, 4, 4.75)
    ]
    assert command(["mixture", *runs, "--suite", "s", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["form"] == "quadratic"
    assert told["weights"] == pytest.approx({"math": 0.6, "code": 0.4}, abs=0.01)
    assert told["expected"] == pytest.approx(0.8, abs=0.01)
    assert told["error"] < 0.02 < told["error_of_mean"]
    assert command(["mixture", *runs]) == 0
    out = capfd.readouterr().out
    assert "best weights by a quadratic surrogate: math 0.6" in out
    assert command(["mixture", *runs, "--suite", "absent"]) == 1
    assert "was not evaluated on 'absent'; it was on: s" in capfd.readouterr().err
    (tmp_path / "0.25" / "config.toml").write_text("")
    assert command(["mixture", *runs]) == 1
    assert "have no data.mixture" in capfd.readouterr().err


def test_few_runs_get_a_line_and_fewer_a_sentence() -> None:
    runs = [Pilot(str(n), {"a": n / 4, "b": 1 - n / 4}, 0.1 * n) for n in (1, 2, 3)]
    advice = advise(runs)
    assert (advice.form, advice.best) == ("linear", (1.0, 0.0))
    with pytest.raises(ConfigError, match="a quadratic surrogate needs two sources, and more than"):
        advise(runs, form="quadratic")
    with pytest.raises(ConfigError, match="too few"):
        advise(runs[:2])
    with pytest.raises(ConfigError, match="has the sources a, c"):
        advise([*runs, Pilot("x", {"a": 0.5, "c": 0.5}, 0.0)])


def test_weights_that_foretell_nothing_are_said_to() -> None:
    scores = (0.5, 0.1, 0.5, 0.1, 0.5, 0.1)
    runs = [Pilot(str(n), {"a": n / 5, "b": 1 - n / 5}, score) for n, score in enumerate(scores)]
    assert "foretell nothing" in advise(runs).lines[-1]
