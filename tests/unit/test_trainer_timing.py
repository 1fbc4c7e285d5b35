"""Where a step's time goes, by a clock of the test's own."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from assay.trainer.core.timing import Timing, flops_of


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def timing(clock: Clock, **settings: float) -> Timing:
    return Timing(torch.device("cpu"), clock=clock, **settings)


def test_seconds_add_up_by_name_and_are_taken_once() -> None:
    clock = Clock()
    of = timing(clock)
    for seconds in (1.0, 2.5):
        with of.of("update_s"):
            clock.now += seconds

    def fails() -> None:
        with of.of("values_s"):
            clock.now += 4.0
            raise ValueError("the weather")

    with pytest.raises(ValueError, match="the weather"):
        fails()
    assert of.taken() == {"update_s": 3.5, "values_s": 4.0}
    assert of.taken() == {}


def test_preemptions_are_those_of_an_engine_that_counts_them() -> None:
    of = timing(Clock())
    hf = SimpleNamespace(sync_s=0.0, preemptions=None)
    assert of.taken(hf) == {}, "nothing is made up"
    counting = SimpleNamespace(sync_s=0.0, preemptions=3)
    assert of.taken(counting) == {"preemptions": 3}
    assert of.taken(counting) == {"preemptions": 0}


def test_tokens_a_second_and_the_share_of_the_peak() -> None:
    clock = Clock()
    of = timing(clock, flops_token=6e9, peak_tflops=100.0)
    of.count(torch.tensor(1500))
    of.count(torch.tensor(500))
    with of.of("update_s"):
        clock.now += 0.5
    assert of.taken() == {
        "update_s": 0.5,
        "update_tokens_per_s": 4000.0,
        "mfu": pytest.approx(0.24),
    }


def test_without_a_peak_there_is_no_share() -> None:
    clock = Clock()
    of = timing(clock, flops_token=6e9)
    of.count(torch.tensor(10))
    with of.of("update_s"):
        clock.now += 1.0
    assert "mfu" not in of.taken()


def test_operations_are_those_of_the_linear_layers() -> None:
    layers = torch.nn.Sequential(
        torch.nn.Embedding(7, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 2, bias=False)
    )
    layers[2].weight.requires_grad_(False)
    assert flops_of(layers) == 6 * 32 + 4 * 16
