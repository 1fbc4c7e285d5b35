"""docs/use/math-library.md's reward function as TRL calls it: its own `_calculate_rewards`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from accelerate import PartialState  # type: ignore[import-untyped]  # it ships no types

from contract.test_client_trl import Trainer
from docs_support import block_of


@pytest.fixture(autouse=True)
def one_process() -> Iterator[None]:
    PartialState(cpu=True)
    yield
    PartialState._reset_state()


@pytest.mark.parametrize("chat", [False, True])
def test_trl_gets_rewards_and_leaves_out_what_has_none(chat: bool) -> None:
    scope: dict[str, Any] = {}
    exec(block_of("docs/use/math-library.md", "def math_reward"), scope)
    said = [r"\boxed{4}", r"\boxed{5}", r"\boxed{4}"]
    completions = [[{"role": "assistant", "content": text}] for text in said] if chat else said
    rows = [{"prompt": "2+2?", "answer": answer} for answer in ("4", "4", " ")]
    trainer = Trainer(scope["math_reward"])
    try:
        found = trainer.rewards(rows, completions).tolist()
    finally:
        trainer.close()
    assert found[:2] == [[1.0], [0.0]]
    assert math.isnan(found[2][0])
