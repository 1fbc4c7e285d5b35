"""What cannot be trained is told in one line that says what to do, and what was reached is kept."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from trainer_processes_support import rows, same

MakeConfig = Callable[..., Any]
Assay = Callable[..., tuple[int, str]]
Train = Callable[..., list[dict[str, Any]]]

GOOD = {"question": "1+1=", "answer": "2"}


@pytest.fixture
def target() -> Iterator[str]:
    """Where a reward server judges by equality."""
    from assay.clients.testing import FakeRewardServer

    with FakeRewardServer() as server:
        yield server.address


@pytest.fixture
def assay(
    tiny_config: MakeConfig,
    tmp_path: Path,
    target: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Assay:
    """`assay train` on the tiny model with some overrides; gives the exit code, and the one line
    that it left on stderr."""
    from assay.cli import main as cli
    from assay.trainer.settings import config

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    file = tmp_path / "tiny.toml"
    made = tiny_config(
        run={"dir": str(tmp_path / "runs"), "checkpoint_every": 1},
        eval={"prompts": 0},
        reward={"target": target},
    )
    file.write_text(config.to_toml(made))

    def call(*overrides: str) -> tuple[int, str]:
        code = cli.run(["train", str(file), *overrides])
        out, err = capfd.readouterr()
        assert "Traceback" not in out + err
        lines = [line for line in err.splitlines() if line.strip()]
        assert len(lines) <= 1, err
        return code, lines[0].removeprefix("assay: error: ") if lines else ""

    return call


def run_folder(tmp_path: Path) -> Path:
    (folder,) = (tmp_path / "runs").iterdir()
    return folder


def rows_of(path: Path, *rows: Any) -> str:
    """A data file; a text is a line of it as it is."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines))
    return f"data.path={path}"


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["rollout.group_size=1"], "rollout.group_size = 1 leaves nothing to compare within a"),
        (["optim.mini_batches=3"], "optim.mini_batches = 3 does not divide the 64 samples of a"),
        (
            ["rollout.max_new_tokens=512"],
            "leaves no room for a prompt in the context of 512 tokens",
        ),
        (["model.lora.rank=2", 'model.lora.target_modules=["query"]'], "fits no layer"),
    ],
)
def test_settings_that_do_not_fit(
    assay: Assay, tmp_path: Path, overrides: list[str], message: str
) -> None:
    code, said = assay(*overrides)
    assert code == 1
    assert message in said
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "holds no rows"),
        (["", "  "], "holds no rows"),
        (
            [GOOD, {"question": "2+2="}],
            "row 2: no column 'answer' for the reference (data.columns.ref",
        ),
        ([GOOD, {"question": "2+2=", "answer": None}], "row 2: column 'answer' is empty; every"),
        ([GOOD, {"question": "2+2=", "answer": ""}], "row 2: column 'answer' is empty; every"),
        ([GOOD, {"question": "9" * 600, "answer": "9"}], "600 tokens"),
        ([GOOD, "{not json"], "line 2: not valid JSON"),
        ([GOOD, "[1]"], "line 2: expected a JSON object, got list"),
    ],
)
def test_data_that_cannot_be_trained_on(
    assay: Assay, tmp_path: Path, lines: list[Any], message: str
) -> None:
    code, said = assay(rows_of(tmp_path / "rows.jsonl", *lines))
    assert code == 1
    assert message in said
    assert not list((tmp_path / "runs").glob("*"))


@pytest.mark.parametrize(
    ("sections", "off"),
    [
        (
            {"critic": {"pretrain_steps": 1}, "truncation": {"window": 2}},
            "method.truncation.window = 0",
        ),
        (
            {"turns": {"mode": "verify", "verify_prompt": "?", "revise_prompt": "!"}},
            'method.turns.mode = "off"',
        ),
    ],
    ids=["truncated", "turns"],
)
def test_a_verifier_of_whole_groups_is_refused_where_groups_do_not_end_together(
    tiny_config: MakeConfig,
    train: Train,
    exact_transport: Any,
    sections: dict[str, Any],
    off: str,
) -> None:
    class OfGroups(exact_transport):  # type: ignore[misc]
        async def list_verifiers(self, request: Any, *, timeout_s: float) -> Any:
            response = await super().list_verifiers(request, timeout_s=timeout_s)
            response.verifiers[0].needs_group = True
            return response

    method = {"advantage": {"estimator": "gae"}, **sections}
    config = tiny_config(method=method, eval={"prompts": 0})
    with pytest.raises(ConfigError, match=f"against one another, .*; set {off}, or use another"):
        train(config, transport=OfGroups)


def tokenizer_without(folder: Path, tiny_model: Path, *names: str) -> str:
    """The tiny model, whose tokenizer lacks some special tokens."""
    shutil.copytree(tiny_model, folder)
    config, core = folder / "tokenizer_config.json", folder / "tokenizer.json"
    settings = json.loads(config.read_text())
    config.write_text(json.dumps({key: v for key, v in settings.items() if key not in names}))
    core.write_text(json.dumps({**json.loads(core.read_text()), "padding": None}))
    return f"model.name={folder}"


def test_a_tokenizer_without_pad_token_pads_with_the_end(
    assay: Assay, tmp_path: Path, tiny_model: Path
) -> None:
    """And the end within a response still counts as its last token: the curve is the same."""
    model = tokenizer_without(tmp_path / "padless", tiny_model, "pad_token")
    assert assay(model, f"run.dir={tmp_path / 'padless-runs'}") == (0, "")
    assert assay() == (0, "")
    (padless,) = (tmp_path / "padless-runs").iterdir()
    same(rows(padless), rows(run_folder(tmp_path)))


def test_a_tokenizer_without_pad_and_end_is_refused(
    assay: Assay, tmp_path: Path, tiny_model: Path
) -> None:
    model = tokenizer_without(tmp_path / "endless", tiny_model, "pad_token", "eos_token")
    code, said = assay(model)
    assert code == 1
    assert "its tokenizer has neither a pad nor an end-of-sequence token" in said
    assert not list((tmp_path / "runs").glob("*"))


def test_a_loss_that_is_no_number_stops_the_run_and_saves_what_led_to_it(
    assay: Assay, tmp_path: Path
) -> None:
    """A learning rate beyond all bounds: the first of two mini-batches throws the weights so far
    that the second has no loss."""
    import torch

    code, said = assay("optim.learning_rate=1e30", "optim.mini_batches=2", "run.steps=3")
    folder = run_folder(tmp_path)
    assert code == 1
    assert said.startswith("the loss of step 1 is nan; what led to it is in ")
    assert "lower optim.learning_rate" in said
    saved = folder / "postmortem" / "step-1"
    assert str(saved) in said.replace("\n", "")
    batch = torch.load(saved / "batch.pt", weights_only=True)
    assert batch["completion_ids"].shape[0] == 32
    assert len((saved / "rollouts.jsonl").read_text().splitlines()) == 64


def test_weights_that_are_no_numbers_stop_the_run_before_it_begins(
    assay: Assay, tmp_path: Path, tiny_model: Path
) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    poisoned = tmp_path / "poisoned"
    shutil.copytree(tiny_model, poisoned)
    path = poisoned / "model.safetensors"
    weights = load_file(path)
    weights["model.norm.weight"] = torch.full_like(weights["model.norm.weight"], float("nan"))
    save_file(weights, path, metadata={"format": "pt"})
    code, said = assay(f"model.name={poisoned}")
    assert code == 1
    assert "the policy's logits are not numbers" in said


def test_a_service_that_judges_nothing_stops_the_run_and_a_checkpoint_is_kept(
    assay: Assay, tmp_path: Path, tiny_config: MakeConfig
) -> None:
    from assay.clients.testing import FakeRewardServer, Knobs

    everything = frozenset(str(number) for number in range(64))
    with FakeRewardServer(knobs=Knobs(fault_ids=everything)) as server:
        code, said = assay(f"reward.target={server.address}", "reward.fault_window=2")
    folder = run_folder(tmp_path)
    assert code == 1
    assert said.startswith("stopped after step 1: 64 of the last 64 samples had no judgement")
    assert said.endswith(f"a checkpoint is saved, continue with `assay train --resume {folder}`")
    assert (folder / "checkpoints" / "checkpoint-1" / "manifest.json").is_file()
    (row,) = rows(folder)
    assert (row["reward"], row["fault_ratio"], row["loss"]) == (None, 1.0, 0.0)


def test_a_group_without_judgement_is_left_out_and_the_rest_is_trained_on(
    assay: Assay, tmp_path: Path
) -> None:
    from assay.clients.testing import FakeRewardServer, Knobs

    knobs = Knobs(fault_ids=frozenset(str(number) for number in range(16, 24)))
    with FakeRewardServer(knobs=knobs) as server:
        code, said = assay(f"reward.target={server.address}", "run.steps=2")
    assert (code, said) == (0, "")
    found = rows(run_folder(tmp_path))
    assert [row["fault_ratio"] for row in found] == [0.125, 0.125]
    assert all(row["grad_norm"] > 0 and row["reward"] is not None for row in found)
