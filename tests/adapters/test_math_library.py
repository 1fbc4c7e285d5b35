"""docs/use/math-library.md as verl and lm-evaluation-harness take it: their loaders and loops."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest

from adapters.conftest import RIGHT, WRONG
from docs_support import block_of

pytestmark = [pytest.mark.adapters, pytest.mark.filterwarnings("ignore")]

PAGE = "docs/use/math-library.md"


def test_verl_loads_the_function_from_a_file(tmp_path: Path) -> None:
    pytest.importorskip("verl", reason="see `make test-adapters`")
    from verl.trainer.ppo.reward import load_reward_manager

    from adapters.test_verl import config_of, rows, scored
    from assay.math import FaultError
    from trainer_support import tiny_tokenizer

    file = tmp_path / "score.py"
    file.write_text(block_of(PAGE, "def compute_score"))
    manager = load_reward_manager(
        config_of(f"reward.custom_reward_function.path={file}"), tiny_tokenizer()
    )
    found = scored(manager, rows([RIGHT, WRONG]))
    assert [one["reward_score"] for one in found] == [1.0, 0.0]
    with pytest.raises(FaultError, match="UNUSABLE_REFERENCE"):
        scored(manager, rows([RIGHT], " "))


def test_lm_evaluation_harness_runs_the_task(tmp_path: Path) -> None:
    lm_eval = pytest.importorskip("lm_eval", reason="see `make test-adapters`")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Says(LM):  # type: ignore[misc]
        """Answers each question with what the question holds."""

        def loglikelihood(self, requests: Any) -> Any:
            raise NotImplementedError

        def loglikelihood_rolling(self, requests: Any) -> Any:
            raise NotImplementedError

        def generate_until(self, requests: Any, disable_tqdm: bool = False) -> list[str]:
            return [request.args[0] for request in requests]

    data = [(RIGHT, "4"), (WRONG, "4"), (r"so \boxed{4.0}", "4"), (RIGHT, " ")]
    lines = [json.dumps({"question": said, "answer": gold}) + "\n" for said, gold in data]
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    (tmp_path / "utils.py").write_text(block_of(PAGE, "def process_results"))
    task = block_of(PAGE, "task: my_math").replace("rows.jsonl", str(tmp_path / "rows.jsonl"))
    (tmp_path / "my_math.yaml").write_text(textwrap.dedent(task))
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    results = lm_eval.simple_evaluate(
        Says(), tasks=["my_math"], task_manager=manager, bootstrap_iters=0
    )["results"]["my_math"]
    assert results["correct,none"] == pytest.approx(2 / 3)
    assert results["fault,none"] == pytest.approx(1 / 4)
