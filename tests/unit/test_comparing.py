"""Two runs compared: whose items, which figures, how wide, and what the page and the data say."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from assay.cli.main import run as command
from assay.kit.errors import ConfigError
from assay.kit.runs.stats import mcnemar_exact, paired_change
from assay.trainer.core.evaluation import Answer, Evaluation
from assay.trainer.records.comparing import compare_runs, html_page, read_run


def answers(told: Mapping[str, Sequence[bool | None]], *, question: str = "{}?") -> Evaluation:
    """Right, wrong or a fault for each sample of each item."""
    return Evaluation(
        tuple(
            Answer(
                problem=name, question=question.format(name), reference="1", response="",
                token_count=3, truncated=False,
                verdict=None if right is None else "correct" if right else "incorrect",
                reward=None if right is None else float(right),
                fault="WORKER_DIED" if right is None else None, sample=n,
                answer=None if right is None else str(int(right)),
            )
            for name, samples in told.items()
            for n, right in enumerate(samples)
        )
    )  # fmt: skip


def written(folder: Path, suites: dict[str, Evaluation], settings: str = "") -> Path:
    folder.mkdir()
    told = Evaluation((), suites=suites).to_json()
    (folder / "eval_after.json").write_text(json.dumps(told))
    if settings:
        (folder / "config.toml").write_text(settings)
    return folder


def compared(tmp_path: Path, first: Any, second: Any, **more: Any) -> Any:
    runs = [
        read_run(str(written(tmp_path / name, suites)))
        for name, suites in (("a", first), ("b", second))
    ]
    return compare_runs(*runs, **more)


def test_one_answer_an_item_is_mcnemars_test(tmp_path: Path) -> None:
    old = {f"m/{n}": [n < 40] for n in range(100)}
    new = {f"m/{n}": [5 <= n < 60] for n in range(100)}
    pair = compared(tmp_path, {"m": answers(old)}, {"m": answers(new)})
    told = pair.to_json()["suites"]["m"]
    assert (told["gained"], told["lost"], told["pairs"]) == (20, 5, 100)
    assert told["test"] == "McNemar"
    assert told["p"] == told["p_holm"] == mcnemar_exact(20, 5)
    change = told["figures"]["accuracy"]["change"]
    value, low, high = paired_change(20, 5, 100)
    assert change["value"] == pytest.approx(value)
    assert (change["low"], change["high"]) == pytest.approx((low, high))
    assert pair.worse == []
    assert compare_runs(*reversed(_again(tmp_path))).worse == ["m accuracy"]


def _again(tmp_path: Path) -> list[Any]:
    return [read_run(str(tmp_path / name)) for name in "ab"]


def test_several_samples_have_every_figure_and_one_p(tmp_path: Path) -> None:
    dice = random.Random(3)
    old = {f"m/{n}": [dice.random() < 0.2 for _ in range(4)] for n in range(60)}
    new = {f"m/{n}": [dice.random() < 0.7 for _ in range(4)] for n in range(60)}
    pair = compared(tmp_path, {"m": answers(old)}, {"m": answers(new)})
    told = pair.to_json()["suites"]["m"]
    assert list(told["figures"]) == ["avg@4", "pass@2", "pass@4", "maj@4"]
    assert told["test"] == "sign flips"
    assert told["p"] < 0.01
    for figure in told["figures"].values():
        change = figure["change"]
        assert change["value"] == pytest.approx(figure["b"]["value"] - figure["a"]["value"])
        assert change["low"] < change["value"] < change["high"]
        assert change["low"] > 0
    same = compare_runs(*[_again(tmp_path)[0]] * 2)
    assert same.to_json()["suites"]["m"]["p"] == 1.0
    assert same.worse == []


def test_another_number_of_samples_compares_the_share_of_right_ones(tmp_path: Path) -> None:
    old, new = {"m/0": [True], "m/1": [False]}, {"m/0": [True, True], "m/1": [True, False]}
    told = compared(tmp_path, {"m": answers(old)}, {"m": answers(new)}).to_json()["suites"]["m"]
    assert list(told["figures"]) == ["accuracy / avg@2"]
    assert told["figures"]["accuracy / avg@2"]["change"]["value"] == pytest.approx(0.25)


def test_other_items_are_never_dropped_unseen(tmp_path: Path) -> None:
    old = answers({f"m/{n}": [True] for n in range(5)})
    new = answers({f"m/{n}": [False] for n in range(2, 7)})
    with pytest.raises(ConfigError) as caught:
        compared(tmp_path, {"m": old}, {"m": new})
    said = str(caught.value)
    assert "m: 3 items of both, 2 of the first alone (m/0, m/1), 2 of the second alone" in said
    assert "--common" in said
    pair = compare_runs(*_again(tmp_path), common=True)
    told = pair.to_json()["suites"]["m"]
    assert (told["items"], told["pairs"]) == (3, 3)
    assert (told["only_a"], told["only_b"]) == (["m/0", "m/1"], ["m/5", "m/6"])
    assert "2 of the first alone" in html_page(pair)


def test_an_item_with_another_text_is_another_item(tmp_path: Path) -> None:
    told = {f"m/{n}": [True] for n in range(3)}
    with pytest.raises(ConfigError, match="0 items of both, 3 with another text"):
        compared(tmp_path, {"m": answers(told)}, {"m": answers(told, question="{}, please?")})


def test_faults_are_in_no_figure_and_stand_beside(tmp_path: Path) -> None:
    old = answers({"m/0": [True, None], "m/1": [None, None], "m/2": [False, False]})
    new = answers({"m/0": [True, True], "m/1": [True, True], "m/2": [True, None]})
    pair = compared(tmp_path, {"m": old}, {"m": new})
    told = pair.to_json()["suites"]["m"]
    assert told["faults"] == [3, 1]
    assert told["unjudged"] == [["m/1"], []]
    assert told["pairs"] == 2
    assert told["figures"]["avg@2"]["change"]["value"] == pytest.approx(0.5)
    assert "without any judgement in the first run: m/1" in html_page(pair)


def test_suites_of_one_run_and_settings_that_differ_are_said(tmp_path: Path) -> None:
    one = answers({"m/0": [True]})
    first = written(tmp_path / "a", {"m": one, "x": one}, "[eval]\ntemperature = 0.6\nshow = 1\n")
    second = written(tmp_path / "b", {"m": one}, "[eval]\ntemperature = 1.0\nshow = 2\n")
    pair = compare_runs(read_run(str(first)), read_run(str(second)))
    assert pair.differences == [f"x: suites of {first} alone"]
    assert pair.settings == [("eval.temperature", 0.6, 1.0)]
    judged = [replace(one, origin={"verifier": name, "template": "t"}) for name in ("x", "y")]
    runs = [
        read_run(str(written(tmp_path / name, {"m": own})))
        for name, own in zip("ef", judged, strict=True)
    ]
    assert compare_runs(*runs).settings == [("m: verifier", "x", "y")]
    apart = [written(tmp_path / "c", {"x": one}), written(tmp_path / "d", {"y": one})]
    with pytest.raises(ConfigError, match=r"no suite in common: .* has x and"):
        compare_runs(*map(read_run, map(str, apart)))


class Balanced(HTMLParser):
    """Fails where a tag is not closed; keeps the text."""

    VOID = ("meta", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_escapes_what_it_is_given(tmp_path: Path) -> None:
    one = answers({"<script>alert(1)</script>": [True], "m/2": [False]})
    html = html_page(compared(tmp_path, {"<b>m</b>": one}, {"<b>m</b>": one}))
    assert "<script" not in html
    assert "<b>m</b>" not in html
    page = Balanced()
    page.feed(html)
    assert page.open == []
    assert "<b>m</b>" in page.text
    assert re.search(r"style-src 'sha256-[^']+'", html.replace("&#x27;", "'"))


def test_the_command_prints_data_writes_the_page_and_says_what_is_worse(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old, new = {f"m/{n}": [True] for n in range(40)}, {f"m/{n}": [n < 9] for n in range(40)}
    first = written(tmp_path / "a", {"m": answers(old)})
    second = written(tmp_path / "b", {"m": answers(new)})
    page = tmp_path / "page.html"
    assert command(["compare", str(first), str(second), "--json", "--html", str(page)]) == 3
    out, err = capfd.readouterr()
    assert json.loads(out)["suites"]["m"]["lost"] == 31
    assert err == "assay: worse: m accuracy\n"
    assert page.read_text().startswith("<!doctype html>")
    assert command(["compare", str(second), str(first)]) == 0
    assert "McNemar" in capfd.readouterr().out
    assert command(["compare", str(first), str(tmp_path / "absent")]) == 1
    assert "there is no evaluation" in capfd.readouterr().err
    (second / "eval_after.json").write_text("{}")
    assert command(["compare", str(first), str(second)]) == 1
    assert "is no evaluation of a run" in capfd.readouterr().err
