"""Rollouts with their judgements, to read; and what is saved of a loss that is no number."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from assay.clients import Component, Span
from assay.trainer.records import postmortem
from assay.trainer.records.samples import describe, one_line, sample_rows, samples_table, telling
from trainer_records_support import bad, good, rollout


def test_a_row_has_the_whole_judgement() -> None:
    judged = good(
        0.5, "partial", extracted_answer="4", explanation="half of it",
        components=(Component("exact", 0.5, 1.0),), spans=(Span(0, 1, 0.5, "step"),),
        suspicions=("hard-coded",),
    )  # fmt: skip
    rollouts = [rollout(judged, draw=3, index=1), rollout(bad(), draw=3, index=2)]
    rows = list(sample_rows(9, rollouts, shaped={(3, 1): 0.25}, advantages={(3, 1): -1.5}))
    whole, fault = rows
    assert (whole["step"], whole["problem"], whole["draw"], whole["sample"]) == (9, "train-3", 3, 1)
    assert (whole["reward"], whole["shaped_reward"], whole["advantage"]) == (0.5, 0.25, -1.5)
    assert (whole["verdict"], whole["answer"], whole["fault"]) == ("partial", "4", None)
    assert whole["components"] == [{"name": "exact", "score": 0.5, "weight": 1.0}]
    assert whole["spans"][0]["label"] == "step"
    assert whole["suspicions"] == ["hard-coded"]
    of_judgement = ("verdict", "reward", "shaped_reward", "advantage", "answer", "explanation",
                    "components", "spans", "suspicions")  # fmt: skip
    assert [fault[key] for key in of_judgement] == [None] * len(of_judgement)
    assert (fault["fault"], fault["fault_message"]) == ("WORKER_DIED", "it died")
    assert list(whole) == list(fault)
    assert json.loads(json.dumps(rows)) == rows
    assert all(
        value is None or isinstance(value, str | int | float) for value in describe(whole).values()
    )


def test_the_telling_ones_are_best_worst_and_faults() -> None:
    results = [good(reward) for reward in (0.1, 0.9, 0.5, 0.0, 1.0)]
    rollouts = [
        rollout(result, text=str(n), index=n) for n, result in enumerate([*results, bad(), bad()])
    ]
    rows = list(sample_rows(1, [*rollouts, rollout(good(1.0), text="4", index=9)]))
    chosen = telling(rows, 4)
    assert [row["reward"] for row in chosen] == [1.0, 0.9, 0.0, None]
    assert [row["fault"] for row in telling(rows, 3)] == [None, None, "WORKER_DIED"]
    assert len(telling(rows, 100)) == 7
    assert telling([], 3) == telling(rows, 0) == []
    assert [row["sample"] for row in telling(rows[5:7], 5)] == [5, 6]
    assert {row["response"] for row in telling(rows, 100)} == set("0123456")  # the other 4 once


@given(st.text(max_size=300), st.integers(5, 60))
def test_a_line_hides_nothing_and_breaks_nothing(text: str, width: int) -> None:
    line = one_line(text, width)
    assert cell_len(line) <= width
    assert "\n" not in line
    assert line.isprintable() or not line


def test_beginning_and_end_are_kept() -> None:
    shown = one_line("a" * 500 + " the answer is 42", 21)
    assert shown.startswith("aaaaa")
    assert shown.endswith("er is 42")
    assert "\u2026" in shown
    assert one_line("\u4f60" * 20, 9) == "\u4f60\u4f60\u2026\u4f60\u4f60"
    assert one_line("a\n\x1b[31mb\u202ec", 40) == "a\u23ce\\x1b[31mb\\u202ec"


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_table_fits_and_markup_is_text(width: int) -> None:
    rollouts = [
        rollout(good(1.0), text="[bold]4[/bold]" + "x" * 300, truncated=True),
        rollout(good(0.0, "incorrect"), text="\u4f60\u597d" * 100, index=1),
        rollout(bad("ITEM_TIMEOUT"), text="", index=2),
    ]
    rows = list(sample_rows(5, rollouts, advantages={(0, 0): 1.25}))
    out = io.StringIO()
    Console(file=out, width=width).print(samples_table(rows, width=width))
    lines = out.getvalue().splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert "step 5: 3 of its rollouts" in lines[0]
    text = out.getvalue()
    assert "[bold]" in text
    assert "4+" in text  # tokens, cut
    assert "! ITEM_TIMEOUT" in text
    assert "+1.25" in text
    assert len(lines) == 1 + 3 + 3 + 1  # title, header in its frame, a line each, frame


def test_what_led_to_a_broken_loss_is_saved_whole(tmp_path: Path) -> None:
    batch = {
        "completion_ids": torch.tensor([[1, 2], [3, 0]]),
        "loss_mask": torch.tensor([[True, True], [True, False]]),
        "advantages": torch.tensor([[1.0, math.nan], [0.5, 0.0]], requires_grad=True),
        "returns": torch.tensor([[1.0, 1.0], [1.0, math.nan]]),  # not in the loss
        "rewards": torch.tensor([1.0, math.nan]),  # a fault
        "old_logps": torch.full((2, 2), math.nan),  # these very weights
        "ref_logps": torch.tensor([[-1.0, -math.inf], [0.0, 0.0]]),
    }
    rollouts = [rollout(good()), rollout(bad(), index=1)]
    message = postmortem.save(
        tmp_path, 12, math.nan, batch=batch, rollouts=rollouts,
        metrics=[{"step": 11, "loss": 0.5, "grad_norm": math.inf}],
    )  # fmt: skip
    assert "the loss of step 12 is nan; not finite: advantages, ref_logps; what led" in message
    assert "\n" not in message
    folder = tmp_path / "postmortem" / "step-12"
    assert str(folder) in message
    loaded = torch.load(folder / "batch.pt", weights_only=True)
    assert set(loaded) == set(batch)
    for name, tensor in batch.items():
        assert torch.equal(loaded[name].nan_to_num(7.0), tensor.nan_to_num(7.0)), name
    rows = [json.loads(line) for line in (folder / "rollouts.jsonl").read_text().splitlines()]
    assert [row["fault"] for row in rows] == [None, "WORKER_DIED"]
    assert (rows[0]["ids"], rows[0]["prompt_ids"]) == ([0, 1, 2, 3], [5, 6])
    assert rows[0]["logprobs"] == [-0.5] * 4
    assert json.loads((folder / "metrics.json").read_text()) == [
        {"step": 11, "loss": 0.5, "grad_norm": "inf"}
    ]
    readme = (folder / "README.txt").read_text()
    assert "ref_logps" in readme
    assert readme.count("<- not finite") == 2


def test_a_broken_loss_of_whole_tensors_points_elsewhere(tmp_path: Path) -> None:
    message = postmortem.save(
        tmp_path, 1, math.inf, batch={"advantages": torch.ones(2)}, rollouts=[], metrics=[],
        rank=1, ranks=2,
    )  # fmt: skip
    assert "is inf; what led" in message
    folder = tmp_path / "postmortem" / "step-1"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README-1.txt", "batch-1.pt", "metrics-1.json", "rollouts-1.jsonl",
    ]  # fmt: skip
    assert "none: the weights, or the loss itself" in (folder / "README-1.txt").read_text()
