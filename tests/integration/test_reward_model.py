"""`assay train-rm` from start to end on tiny models, and what genrm makes of what it leaves.

The contract between the two: what the trainer's forward pass says of a row, the served judge says.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.genrm.domain import (
    CandidatePair,
    CandidateResponse,
    CandidateSteps,
    ResolvedJudgeSettings,
    ResolvedStepSettings,
)
from assay.kit.errors import ConfigError
from assay.trainer.errors import TrainingStoppedError
from assay.trainer.recipes.reward_model import config as configs
from reward_model_support import chat, curve, served, train

WORDS = ["red", "blue", "tall", "small", "round", "old", "new", "quick", "warm", "cold"]
KINDS = ("pairwise", "bradley-terry", "prm")
TEMPLATE = """
name = "brief"
version = 1
kind = "pairwise"
description = "Which is better?"
prefill = "Better:"
user = '''
{question}
{response_a}
{response_b}
'''

[[verdicts]]
text = " A"
value = 1.0

[[verdicts]]
text = " B"
value = 0.0
"""
Train = Callable[..., dict[str, Any] | None]


def example_rows(count: int = 120) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Pairs and steps in which one word says what is right."""
    dice = random.Random(0)
    pairs, steps = [], []
    for number in range(count):
        asked = f"Say something {dice.choice(WORDS)}, {number}"
        texts = [f"{word} {dice.choice(WORDS)} thing" for word in ("fine", "awful")]
        pairs.append({"prompt": asked, "chosen": texts[0], "rejected": texts[1]})
        labels = [dice.randint(0, 1) for _ in range(4)]
        said = [f"{('awful', 'fine')[label]} {dice.choice(WORDS)}" for label in labels]
        steps.append({"problem": asked, "steps": said, "labels": labels})
    return pairs, steps


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs.jsonl, steps.jsonl and a short template."""
    folder = tmp_path_factory.mktemp("judge-data")
    for name, rows in zip(("pairs", "steps"), example_rows(), strict=True):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "templates").mkdir()
    (folder / "templates" / "brief.toml").write_text(TEMPLATE, encoding="utf-8")
    return folder


def settings(where: Path, kind: str, /, **sections: dict[str, Any]) -> configs.RmConfig:
    """Settings of a tiny run; keyword arguments are sections with what differs."""
    name = "steps" if kind == "prm" else "pairs"
    tree: dict[str, dict[str, Any]] = {
        "model": {"name": "tiny", "device": "cpu", "precision": "float32"},
        "tiny": {"hidden": 64, "layers": 2, "vocabulary": 420},
        "data": {"paths": [str(where / f"{name}.jsonl")], "max_tokens": 256},
        "method": {"kind": kind},
        "optim": {"learning_rate": 3e-3, "batch": 8},
        "eval": {"prompts": 40, "batch_size": 40},
        "run": {"steps": 30, "checkpoint_every": 0, "log_every": 1},
    }
    if kind == "pairwise":
        tree["method"].update(template="brief", templates=[str(where / "templates")])
        tree["run"]["steps"] = 4
    for section, values in sections.items():
        tree.setdefault(section, {}).update(values)
    if tree["model"]["name"] != "tiny":
        del tree["tiny"]
    return configs.build(tree, origin="test")


@pytest.fixture(scope="session")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One finished run of each kind."""
    paths = {}
    for kind in KINDS:
        paths[kind] = tmp_path_factory.mktemp("runs") / kind
        assert train(settings(data, kind), paths[kind]) is not None
    return paths


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_leaves_its_records(runs: dict[str, Path], kind: str) -> None:
    report = json.loads((runs[kind] / "report.json").read_text())
    steps = report["run"]["steps"]
    assert [row["step"] for row in curve(runs[kind])] == list(range(1, steps + 1))
    assert report["before"]["counts"]["prompts"] == report["after"]["counts"]["prompts"] == 40
    assert (runs[kind] / "report.md").read_text().startswith("# ")
    assert (runs[kind] / "curves.png").stat().st_size > 10_000
    assert list((runs[kind] / "tensorboard").iterdir())
    assert (runs[kind] / "checkpoints" / f"checkpoint-{steps}" / "manifest.json").is_file()
    session = json.loads((runs[kind] / "run.json").read_text())["sessions"][0]
    assert session["seed"] == 0
    assert session["data"]["source"] == "jsonl"
    assert session["data"]["name"].endswith(".jsonl")
    assert session["data"]["example"].startswith("Say something ")


@pytest.mark.parametrize("kind", ["bradley-terry", "prm"])
def test_what_one_word_says_is_learned(runs: dict[str, Path], kind: str) -> None:
    report = json.loads((runs[kind] / "report.json").read_text())
    (name, after), *_ = report["after"]["figures"].items()
    assert report["above_chance"], f"{name} {after}"
    assert after["value"] > 0.85


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_pairwise_judge_learns_in_both_orders(data: Path, tmp_path: Path) -> None:
    config = settings(data, "pairwise", optim={"batch": 16}, run={"steps": 70})
    report = train(config, tmp_path / "run")
    assert report is not None
    figures = report["after"]["figures"]
    assert report["above_chance"]
    for name in ("accuracy", "chosen shown first", "chosen shown second", "orders agree"):
        assert figures[name]["value"] > 0.85, name


def held_out(path: Path, data: Path, kind: str) -> tuple[Any, Any]:
    """The held-out rows of a run, and what its trainer's own forward pass says of them."""
    import torch
    from transformers import AutoTokenizer

    from assay.clients.judging.rendering import open_renderer
    from assay.trainer.recipes.reward_model import models, trainers
    from assay.trainer.recipes.reward_model.data import load_rows
    from assay.trainer.recipes.reward_model.kinds import KINDS as TABLE

    config = settings(data, kind)
    rows = load_rows(config).eval[:6]
    tokenizer = AutoTokenizer.from_pretrained(path / "model")
    renderer = open_renderer(config.method.template, [data / "templates"])
    examples = TABLE[config.method.kind].encode(rows, renderer, tokenizer, config)
    model = models._AUTO[config.method.kind].from_pretrained(path / "model").eval()
    pad = tokenizer.pad_token_id
    with torch.inference_mode():
        if kind == "pairwise":
            batch = trainers.PairCollator(pad)(examples.items)
            found, _ = trainers.pair_verdicts(model, batch)
            return rows, torch.sigmoid(found).mean(-1).tolist()
        if kind == "prm":
            batch = trainers.StepCollator(pad)(examples.items)
            found = trainers.step_margins(trainers.step_outputs(model, batch))
            return rows, torch.sigmoid(found).tolist()
        ids, mask = trainers.pad_ids([e["chosen_ids"] for e in examples.items], pad, left=False)
        return rows, model(ids, attention_mask=mask).logits.squeeze(-1).tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_served_is_what_was_trained(runs: dict[str, Path], data: Path, kind: str) -> None:
    """The judge over the engine says what the trainer's forward pass says, within 1e-5."""
    from assay.genrm.judges import judge_pair, judge_response
    from assay.genrm.steps import score_steps
    from assay.genrm.templates import load_templates

    rows, expected = held_out(runs[kind], data, kind)
    templates = load_templates([data / "templates"])

    def ask(info: Any) -> list[Any]:
        if kind == "pairwise":
            assert info.template == "brief@1"  # on which it was trained, and so its default
            brief = ResolvedJudgeSettings(scoring="token-probability", least_mass=0.0)
            return [
                judge_pair(
                    CandidatePair(chat(row), row.chosen, row.rejected), brief, info, templates
                )
                for row in rows
            ]
        if kind == "prm":
            return [
                score_steps(
                    CandidateSteps(chat(row), row.response, steps=row.steps),
                    ResolvedStepSettings(splitting="line"),
                    info,
                    templates,
                )
                for row in rows
            ]
        return [
            judge_response(
                CandidateResponse(chat(row), row.chosen), ResolvedJudgeSettings(), info, templates
            )
            for row in rows
        ]

    answers = served(runs[kind], ask)
    if kind == "pairwise":
        assert {answer.judge.template for answer in answers} == {"brief@1"}
        found = [answer.win_probability for answer in answers]
    elif kind == "prm":
        found = [step.score for answer in answers for step in answer.steps]
    else:
        found = [answer.score for answer in answers]
    assert found == pytest.approx(expected, abs=1e-5)


@pytest.mark.slow
def test_a_killed_run_continues_its_curve(data: Path, tmp_path: Path) -> None:
    """From the checkpoint before the kill, every further step is what it would have been."""
    limits = {"steps": 6, "checkpoint_every": 3, "keep_checkpoints": 2}
    config = settings(data, "bradley-terry", run=limits)
    train(config, tmp_path / "run")
    before = curve(tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "model")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "checkpoint-6")
    train(config, tmp_path / "run")
    assert curve(tmp_path / "run") == before
    assert (tmp_path / "run" / "model" / "config.json").is_file()


@pytest.mark.parametrize(
    "kind", [pytest.param("pairwise", marks=pytest.mark.slow), "bradley-terry"]
)
def test_a_batch_in_parts_is_the_same_step(data: Path, tmp_path: Path, kind: str) -> None:
    def losses(micro_batch: int) -> list[float]:
        path = tmp_path / str(micro_batch)
        optim = {"micro_batch": micro_batch, "learning_rate": 1e-3}
        sizes = {"run": {"steps": 3}, "eval": {"prompts": 0}}
        assert train(settings(data, kind, optim=optim, **sizes), path) is not None
        return [row["loss"] for row in curve(path)]

    assert losses(2) == pytest.approx(losses(8), abs=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "outputs"), [("mse", 2), ("regression", 1), ("hl-gauss", 51), ("two-hot", 51)]
)
def test_neutral_lines_of_code_are_drawn_to_the_middle(
    tmp_path: Path, loss: str, outputs: int
) -> None:
    """Comments are neither right nor wrong: what a policy gains by writing them is nothing."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    from assay.clients.judging.rendering import open_renderer
    from assay.trainer.recipes.reward_model import trainers
    from assay.trainer.recipes.reward_model.data import load_rows
    from assay.trainer.recipes.reward_model.encoding import encode_steps

    dice, lines = random.Random(3), {1: "x += 1\n", -1: "x -= 9\n", 0: "# a note\n"}
    rows = []
    for number in range(100):
        labels = [dice.choice((1, -1, 0)) for _ in range(5)]
        code = "".join(lines[label] for label in labels)
        rows.append({"prompt": f"Count, {number}", "code": code, "labels": labels})
    path = tmp_path / "steps.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    steps = 100 if outputs > 2 else 40  # 51 classes begin alike, and take longer to part
    config = settings(tmp_path, "prm", method={"loss": loss}, run={"steps": steps})
    assert train(config, tmp_path / "run") is not None
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "run" / "model")
    model = AutoModelForTokenClassification.from_pretrained(tmp_path / "run" / "model").eval()
    examples = encode_steps(load_rows(config).eval, open_renderer(), tokenizer, config)
    with torch.inference_mode():
        batch = trainers.StepCollator(tokenizer.pad_token_id)(examples.items)
        margins = trainers.step_margins(trainers.step_outputs(model, batch))
    chances = torch.sigmoid(margins) if loss == "mse" else (margins + 1) / 2
    means = {label: chances[batch["labels"] == label].mean().item() for label in (1, 0, -1)}
    assert means[1] > 0.85
    assert means[-1] < 0.15
    assert 0.35 < means[0] < 0.65
    assert model.config.num_labels == outputs
    assert getattr(model.config, "assay_step_output", "") == ("score" * (loss != "mse"))


@pytest.mark.parametrize("loss", ["regression", "hl-gauss"])
def test_losses_of_scores_are_for_step_heads(data: Path, loss: str) -> None:
    with pytest.raises(ConfigError, match=f'"{loss}" is read only where'):
        settings(data, "pairwise", method={"loss": loss})


def test_bins_are_read_by_losses_of_classes_alone(data: Path) -> None:
    with pytest.raises(ConfigError, match=r"method\.bins"):
        settings(data, "prm", method={"loss": "regression", "bins": 11})


@pytest.mark.slow
def test_an_interrupted_run_is_taken_up_again(data: Path, tmp_path: Path) -> None:
    config = settings(data, "prm", run={"steps": 8, "checkpoint_every": 0})
    train(config, tmp_path / "whole")
    path = tmp_path / "stopped"

    def interrupt() -> None:
        while not (path / "metrics.jsonl").is_file() or len(curve(path)) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    assert train(config, path) is None
    assert not (path / "model").exists()
    done = len(curve(path))
    assert 2 <= done < 8
    rows = data / "steps.jsonl"
    text = rows.read_text(encoding="utf-8")
    rows.write_text(text.replace("thing", "matter").replace("awful", "dire"), encoding="utf-8")
    try:
        with pytest.raises(ConfigError, match="has other rows than this run began with"):
            train(config, path)
    finally:
        rows.write_text(text, encoding="utf-8")
    assert train(config, path) is not None
    assert curve(path) == curve(tmp_path / "whole")
    assert len(json.loads((path / "run.json").read_text())["sessions"]) == 2


def test_a_run_whose_rows_are_too_long_says_so(data: Path, tmp_path: Path) -> None:
    from assay.kit.errors import ConfigError

    config = settings(data, "prm", data={"max_tokens": 4})
    with pytest.raises(ConfigError, match=r"no row fits into data.max_tokens = 4"):
        train(config, tmp_path / "run")


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"method": {"template": "absent"}}, "absent"),
        ({"method": {"template": "preference-reasoned"}}, "does not name one of two"),
        ({"model": {"train_layers": 3}}, "the layers are 2"),
    ],
)
def test_what_cannot_be_trained_is_told(
    data: Path, tmp_path: Path, sections: dict[str, Any], says: str
) -> None:
    from assay.kit.errors import ConfigError

    with pytest.raises(ConfigError, match=says):
        train(settings(data, "pairwise", **sections), tmp_path / "run")


def test_a_run_that_diverges_stops(data: Path, tmp_path: Path) -> None:
    config = settings(data, "prm", optim={"learning_rate": 1e30, "max_grad_norm": 0.0})
    with pytest.raises(TrainingStoppedError, match="has diverged"):
        train(config, tmp_path / "run")


def test_a_model_is_cut_and_frozen(runs: dict[str, Path], data: Path) -> None:
    """From the first of two layers, only that and the head learn."""
    from assay.trainer.recipes.reward_model.models import load_learner

    name = str(runs["bradley-terry"] / "model")
    model = {"name": name, "layers": 1, "train_layers": 1}
    config = settings(data, "prm", model=model)
    learner = load_learner(config, (), lambda _text: None)
    assert learner.model.config.num_hidden_layers == 1
    frozen = [n for n, w in learner.model.named_parameters() if not w.requires_grad]
    assert frozen == ["model.embed_tokens.weight"]


def test_a_judge_is_trained_on_letters_as_it_is_asked(data: Path) -> None:
    """Each pair has letters of its own, and over the pairs a letter stands for either side."""
    from assay.clients.judging.rendering import open_renderer
    from assay.trainer.recipes.reward_model.data import load_rows
    from assay.trainer.recipes.reward_model.encoding import encode_pairs
    from assay.trainer.recipes.reward_model.models import make_tokenizer

    config = settings(
        data, "pairwise", method={"template": "preference@2"}, data={"max_tokens": 4000}
    )
    renderer = open_renderer("preference@2")
    tokenizer = make_tokenizer(renderer.words() * 40, 900)
    rows = load_rows(config).train[:40]
    examples = encode_pairs(rows, renderer, tokenizer, config)
    assert (len(examples.items), examples.template) == (40, "preference@2")
    sides: dict[int, set[int]] = {}
    for item in examples.items:
        assert sorted(item["signs"]) == [-1, 1]
        for ids, (first, second) in zip(item["orders"], item["verdicts"], strict=True):
            text = tokenizer.decode(ids)
            for verdict, meaning in ((first, "first"), (second, "second")):
                line = f"\n{tokenizer.decode([verdict]).strip()}: the {meaning} response is better"
                assert line in text
            sides.setdefault(first, set()).add(0)
            sides.setdefault(second, set()).add(1)
    assert len(sides) == 10
    assert all(stands == {0, 1} for stands in sides.values())
