"""The line per step: what is in it, and that it fits."""

from __future__ import annotations

import functools
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from assay.kit.runs.progress import duration
from assay.trainer.records.metric_table import METRICS
from assay.trainer.records.progress import COLUMNS, StepDisplay, columns, header, legend, line
from assay.trainer.settings.config import Config, build

CRITIC = ("method.advantage.estimator=gae",)
TRUNCATION = ("method.critic.pretrain_steps=1", "method.truncation.window=8")
EVERYTHING = (
    *CRITIC,
    "method.dynamic_sampling.enabled=true",
    "method.loss.kl_coef=0.01",
    "method.shaping.overlong=soft",
    "method.shaping.overlong_cache=10",
)


@functools.cache
def config(*overrides: str) -> Config:
    return build({}, overrides, origin="test")


def names(*overrides: str, width: int = 120) -> list[str]:
    return [column.name for column in columns(config(*overrides), width)]


def test_columns_are_those_that_are_measured() -> None:
    assert "KL" not in names()
    assert "KL" in names("method.loss.kl_coef=0.01")
    assert {"EV", "v-loss"} <= set(names(*CRITIC))
    assert not {"EV", "v-loss", "keep", "shaped"} & set(names(width=400))
    assert "keep" in names("method.dynamic_sampling.enabled=true")
    assert "shaped" in names(*EVERYTHING, width=400)
    assert "ended" in names(*CRITIC, *TRUNCATION, width=400)
    assert {"verified", "alpha"} <= set(names("method.cotraining.enabled=true", width=400))
    assert "gap" in names("method.gold.verifier=code", width=400)
    # dynamic sampling, truncation and a verifier that learns do not go together
    everything = names(*EVERYTHING, "method.gold.verifier=code", width=400)
    assert len(everything) == len(COLUMNS) - 3
    for always in ("reward", "correct", "fault", "length", "entropy", "clip-/+%", "train", "left"):
        assert always in names(*EVERYTHING)


@pytest.mark.parametrize("overrides", [(), CRITIC, EVERYTHING])
@given(width=st.integers(20, 300))
def test_lines_fit_and_keep_their_order(overrides: tuple[str, ...], width: int) -> None:
    shown = columns(config(*overrides), width)
    assert len(header(shown)) <= width
    assert [column for column in COLUMNS if column in shown] == list(shown)
    wider = columns(config(*overrides), width + 1)
    assert min(c.rank for c in wider) == min(c.rank for c in shown) == 0
    assert all(len(text) <= max(width, 60) for text in legend(shown, width).splitlines())


def test_every_column_shows_a_documented_number() -> None:
    for column in COLUMNS:
        assert set(column.keys) <= {*METRICS, "left_s"}


FULL: dict[str, Any] = {
    "step": 120, "reward": 0.4567, "shaped_reward": -0.2, "reward_std": 0.5, "correct": 0.45,
    "fault_ratio": 0.03, "keep_rate": 0.43, "rounds": 3.0, "response_length": 1234.4,
    "truncated": 1.0, "entropy": 0.4321, "clip_low": 0.0012, "clip_high": 0.9934, "kl": 123.4,
    "explained_variance": -3000.0, "value_loss": 1e-9, "drift_mean": 1e-5, "tokens_per_s": 123456.0,
    "generate_s": 12.3, "score_wait_s": 0.1, "train_s": 1001.2, "left_s": 3725.0,
}  # fmt: skip


def test_lines_stand_under_their_names() -> None:
    for row in (FULL, {"step": 3, "left_s": 3725.0}, {**FULL, "reward": -1.5, "kl": 0.0}):
        text = line(row, 1000, COLUMNS)
        assert len(text) == len(header(COLUMNS))
        cells, at = [], 9
        for column in COLUMNS:
            cells.append(text[at : at + column.width])
            at += column.width
        assert [cell for cell in cells if not cell.startswith(" ")] == []
    assert line({"step": 3, "left_s": 3725.0}, 10, COLUMNS).split() == [
        "3/10", *["-"] * (len(COLUMNS) - 1), "1:02:05",
    ]  # fmt: skip
    shown = dict(zip([c.name for c in COLUMNS], line(FULL, 1000, COLUMNS).split()[1:], strict=True))
    assert shown["keep"] == "43%/3"
    assert shown["clip-/+%"] == "0.12/99"
    assert shown["tok/s"] == "123k"
    assert shown["drift"] == "1e-5"
    assert duration(59.6) == "1:00"


def test_without_a_terminal_there_is_no_bar() -> None:
    out = io.StringIO()
    display = StepDisplay(Console(file=out))
    display.steps(config())
    display.begin("training", 2)
    for step in (1, 2):
        display.step({"step": step, "fault_ratio": 0.5}, 2)
    display.end()
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("reward: mean over judged responses")
    assert [text.split()[0] for text in lines[-3:]] == ["step", "1/2", "2/2"]
    assert "\x1b" not in out.getvalue()
    assert max(map(len, lines)) <= 120


def test_names_come_again_now_and_then() -> None:
    out = io.StringIO()
    display = StepDisplay(Console(file=out))
    for step in range(1, 42):
        display.step({"step": step}, 41)
    heads = [n for n, text in enumerate(out.getvalue().splitlines()) if text.split()[0] == "step"]
    assert heads == [0, 41]


def test_on_a_terminal_the_lines_stay_and_fit() -> None:
    out = io.StringIO()
    display = StepDisplay(Console(file=out, force_terminal=True, width=80, color_system=None))
    display.steps(config(*EVERYTHING))
    display.begin("training", 200)
    display.step(FULL, 200)
    display.end()
    assert "120/200" in out.getvalue()
    assert "43%/3" in out.getvalue()
    assert "v-loss" not in out.getvalue()


def test_what_stands_beside_the_bar_comes_and_goes() -> None:
    out = io.StringIO()
    display = StepDisplay(Console(file=out, force_terminal=True, width=80, color_system=None))
    display.aside("held 0:03")  # without a bar there is no place for it
    display.begin("training", 10)
    shown = []
    for text in ("held 0:03 of at most 30:00", ""):
        out.truncate(0)
        display.aside(text)
        assert display._bar is not None
        display._bar.refresh()
        shown.append(out.getvalue())
    display.end()
    assert "training held 0:03 of at most 30:00" in shown[0]
    assert "training" in shown[1]
    assert "held" not in shown[1]
