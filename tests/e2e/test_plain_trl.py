"""TRL's own GRPOTrainer, as its users have it, on rewards from a real server: one argument."""

from __future__ import annotations

import os
import signal
import socket
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.clients import EmbeddedServices
from assay.clients.trainers.common import fault_ratio
from assay.clients.trainers.common.contact import FirstContactError
from assay.clients.trainers.common.fault_ratio import TooManyFaultsError
from assay.clients.trainers.trl import reward_function
from assay.viewer.journals.reader import Reader

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    fault_ratio.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TRL's and accelerate's own advice
        yield


@pytest.fixture
def make_trainer(tiny_model: Path, sums_file: Path, tmp_path: Path) -> Any:
    """Makes a GRPOTrainer of so many steps with a reward function, and callbacks."""
    from datasets import load_dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl.trainer.grpo_config import GRPOConfig
    from trl.trainer.grpo_trainer import GRPOTrainer

    def make(reward: Any, steps: int, *callbacks: Any) -> Any:
        rows = load_dataset(
            "json", data_files=str(sums_file), split="train", cache_dir=str(tmp_path / "cache")
        )
        settings = GRPOConfig(
            output_dir=str(tmp_path / "out"),
            per_device_train_batch_size=32,
            num_generations=8,
            max_completion_length=4,
            max_steps=steps,
            learning_rate=4e-4,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            logging_steps=1,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        return GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(tiny_model),
            processing_class=AutoTokenizer.from_pretrained(tiny_model),
            reward_funcs=reward,
            train_dataset=rows.rename_column("question", "prompt"),
            args=settings,
            callbacks=list(callbacks),
        )

    return make


def test_trl_trains_on_rewards_from_a_server(make_trainer: Any, tmp_path: Path) -> None:
    import torch

    journal = tmp_path / "verdicts.sqlite"
    kept = {"reward": ["--journal", str(journal)]}
    with EmbeddedServices(arguments=kept) as services:
        reward = reward_function(services.address, task="math", labels={"run": "plain"})
        trainer = make_trainer(reward, 3)
        before = [weight.detach().clone() for weight in trainer.model.parameters()]
        trainer.train()
    steps = [entry for entry in trainer.state.log_history if "reward" in entry]
    assert len(steps) == 3
    assert all(0 < entry["reward"] < 1 for entry in steps)
    assert all(entry["assay/fault_ratio"] == 0 for entry in steps)
    with Reader(journal) as reader:
        found = Counter(tuple(sorted(record["labels"].items())) for record in reader.each())
    assert found == {
        (("run", "plain"), ("step", str(step)), ("trainer", "trl")): 32 for step in range(3)
    }
    after = list(trainer.model.parameters())
    assert any(not torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_trl_does_not_begin_where_nobody_judges(make_trainer: Any) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
    trainer = make_trainer(reward_function(nobody, task="math", timeout_s=1.0), 3)
    with pytest.raises(FirstContactError, match=f"no reward server answers at {nobody}"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_trl_stops_when_the_server_is_killed(make_trainer: Any) -> None:
    """It trained to the end on nothing but None."""
    from transformers import TrainerCallback

    with EmbeddedServices() as services:

        class Kill(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                if state.global_step == 1:
                    os.kill(services.pid(), signal.SIGKILL)

        reward = reward_function(services.address, task="math", timeout_s=4.0)
        trainer = make_trainer(reward, 50, Kill())
        with pytest.raises(TooManyFaultsError, match="no judgement"):
            trainer.train()
    # A good step of 32, then bad ones: past one half at the second, said from the third call on.
    assert trainer.state.global_step == 2


def test_trl_stops_on_a_verifier_that_always_faults(make_trainer: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken(response, reference):\n    raise OSError(28)\n")
    arguments = {"reward": ["--verifier", f"{tmp_path}/mine.py:broken"]}
    with EmbeddedServices(arguments=arguments) as services:
        trainer = make_trainer(reward_function(services.address, verifier="broken"), 50)
        with pytest.raises(TooManyFaultsError, match=r"96 of the last 96 .*VERIFIER_FAILED x96"):
            trainer.train()
        assert trainer.state.global_step == 2
        lenient = reward_function(services.address, verifier="broken", max_fault_ratio=1.0)
        trainer = make_trainer(lenient, 4)
        trainer.train()
        assert trainer.state.global_step == 4
