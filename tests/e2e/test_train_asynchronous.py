"""Rollouts drawn beside the training, in the whole trainer: what equals the synchronous run, which
weights draw what, and what a failure leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from assay.trainer.engines.hf import HfEngine
from assay.trainer.errors import TrainingStoppedError

Train = Callable[..., list[dict[str, Any]]]
Curve = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]
MakeConfig = Callable[..., Any]

OWN = ("staleness", "padding_ratio")


def without(rows: list[dict[str, Any]], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in names} for row in rows]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(folder / "model" / "model.safetensors")
    return found


def asynchronous(mode: str, staleness: int = 1, **loss: Any) -> dict[str, Any]:
    stale = {"max_staleness": staleness} if mode == "bounded" else {}
    return {"asynchrony": {"mode": mode, **stale}, "loss": loss}


@pytest.mark.slow
def test_what_is_never_stale_is_the_synchronous_run_to_the_bit(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path
) -> None:
    """Also with adapters, whose dropout draws on torch's random state while the thread draws."""
    sections: dict[str, Any] = {
        "model": {"lora": {"rank": 4, "dropout": 0.2}},
        "optim": {"mini_batches": 2, "learning_rate": 4e-3},
        "rollout": {"batch": 24},
        "eval": {"prompts": 0},
    }
    made = {
        name: train(tiny_config(method=asynchronous(mode, 0), **sections), name)
        for name, mode in (("sync", "off"), ("async", "bounded"))
    }
    found, expected = (without(curve(made[name]), OWN) for name in ("async", "sync"))
    assert found == expected
    whole, other = weights(tmp_path / "async"), weights(tmp_path / "sync")
    assert all(torch.equal(whole[name], other[name]) for name in other)


@pytest.mark.slow
@pytest.mark.parametrize("exact", [True, False])
def test_periodic_is_the_synchronous_run(
    tiny_config: MakeConfig, train: Train, curve: Curve, tmp_path: Path, exact: bool
) -> None:
    """To the bit where responses are of one length and their tokens a power of two; else but for
    what shares a pass and the denominator, which float rounding sees."""
    sections: dict[str, Any] = {
        "optim": {"micro_batch": 16 if exact else 24},
        "rollout": {"max_new_tokens": 1 if exact else 4, "batch": 16},
        "eval": {"prompts": 0},
        "run": {"steps": 3},
    }
    kept = {"kl_coef": 0.05, "entropy_coef": 0.01}
    made = {
        mode: train(tiny_config(method=asynchronous(mode, **kept), **sections), mode)
        for mode in ("off", "periodic")
    }
    found, expected = weights(tmp_path / "periodic"), weights(tmp_path / "off")
    rows, others = (without(curve(made[mode]), OWN) for mode in ("periodic", "off"))
    if exact:
        assert rows == others
        assert all(torch.equal(found[name], expected[name]) for name in expected)
        return
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], rtol=1e-4, atol=2e-6)
    for row, other in zip(rows, others, strict=True):
        for name, value in other.items():
            near = value if not isinstance(value, float) else pytest.approx(value, 1e-3, 2e-6)
            assert row[name] == near, name


def test_a_failure_in_the_thread_ends_the_run_at_its_step(
    tiny_config: MakeConfig, train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Steps that have their batches are made; the thread is gone."""
    from assay.kit.runs.records import read_rows

    generate, calls = HfEngine._draw, []

    def fails(self: HfEngine, on_ended: Any) -> Any:
        calls.append(threading.current_thread().name)
        if len(calls) == 3:
            raise TrainingStoppedError("the weather")
        return generate(self, on_ended)

    monkeypatch.setattr(HfEngine, "_draw", fails)
    with pytest.raises(TrainingStoppedError, match="the weather"):
        train(tiny_config(method=asynchronous("bounded", 2), eval={"prompts": 0}))
    assert [row["step"] for row in read_rows(tmp_path / "run" / "metrics.jsonl")] == [1, 2]
    assert len(calls) == 3
    assert set(calls) == {"rollouts_0"}
    assert not any(thread.name == "rollouts_0" for thread in threading.enumerate())
