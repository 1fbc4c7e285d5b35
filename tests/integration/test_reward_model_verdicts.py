"""Judges of single responses, judges that write critiques, and adapters: trained and served."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from assay.genrm.domain import CandidateResponse, ResolvedJudgeSettings
from assay.genrm.labelling.critique_commands import label_critiques
from assay.genrm.labelling.critiques import agreeing, consensus, labelled
from assay.kit.errors import ConfigError
from assay.trainer.recipes.reward_model import config as configs
from genrm_service import running
from reward_model_support import chat, curve, served, train

WORDS = ["red", "blue", "tall", "small", "round", "old"]
TEMPLATE = """
name = "brief"
version = 1
kind = "pointwise"
description = "Is it right?"
prefill = "Verdict:"
user = '''
{question}
{ground_truth?}
{response}
'''

[[verdicts]]
text = " yes"
value = 1.0

[[verdicts]]
text = " no"
value = 0.0
"""
CRITIC = """
name = "brief-critique"
version = 1
kind = "critique"
description = "Checks steps."
user = '''
{question}
{ground_truth?}
{steps}
'''
"""


def point(number: int, dice: random.Random) -> dict[str, Any]:
    right = dice.random() < 0.5
    said = f"{'fine' if right else 'awful'} {dice.choice(WORDS)} thing"
    return {"question": f"Say {dice.choice(WORDS)}, {number}", "response": said, "label": right}


def critique(number: int, dice: random.Random) -> dict[str, Any]:
    labels = [dice.random() < 0.6 for _ in range(2)]
    steps = [f"{'fine' if label else 'awful'} {dice.choice(WORDS)}" for label in labels]
    lines = [f"Step {n}: {'correct' if label else 'wrong'}" for n, label in enumerate(labels, 1)]
    closing = f"Verdict: {'correct' if all(labels) else 'wrong'}"
    written = "\n".join([*lines, closing])
    return {"problem": f"Say {number}", "steps": steps, "critique": written}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with points.jsonl, critiques.jsonl, and short templates."""
    folder, dice = tmp_path_factory.mktemp("verdicts"), random.Random(0)
    for name, make in (("points", point), ("critiques", critique)):
        rows = [make(number, dice) for number in range(160)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "templates").mkdir()
    for name, text in (("brief", TEMPLATE), ("brief-critique", CRITIC)):
        (folder / "templates" / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder


def settings(where: Path, kind: str, /, **sections: dict[str, Any]) -> configs.RmConfig:
    """Settings of a tiny run; keyword arguments are sections with what differs."""
    file, template = {
        "pointwise": ("points", "brief"),
        "critique": ("critiques", "brief-critique"),
    }[kind]
    tree: dict[str, dict[str, Any]] = {
        "model": {"name": "tiny", "device": "cpu", "precision": "float32"},
        "tiny": {"hidden": 64, "layers": 2, "vocabulary": 420},
        "data": {"paths": [str(where / f"{file}.jsonl")], "max_tokens": 384},
        "method": {"kind": kind, "template": template, "templates": [str(where / "templates")]},
        "optim": {"learning_rate": 3e-3, "batch": 8},
        "eval": {"prompts": 40, "batch_size": 40},
        "run": {"steps": 30, "checkpoint_every": 0, "log_every": 1},
    }
    for section, values in sections.items():
        tree.setdefault(section, {}).update(values)
    if tree["model"]["name"] != "tiny":
        del tree["tiny"]
    return configs.build(tree, origin="test")


@pytest.fixture(scope="module")
def runs(data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each kind."""
    paths = {}
    for kind, steps in (("pointwise", 60), ("critique", 110)):
        paths[kind] = tmp_path_factory.mktemp("runs") / kind
        assert train(settings(data, kind, run={"steps": steps}), paths[kind]) is not None
    return paths


def report_of(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((path / "report.json").read_text())
    return read


def test_a_judge_of_single_responses_learns_and_says_its_verdict(runs: dict[str, Path]) -> None:
    report = report_of(runs["pointwise"])
    before, after = report["before"], report["after"]
    assert after["figures"]["AUC"]["value"] > 0.9 > before["figures"]["AUC"]["value"] + 0.1
    assert after["figures"]["accuracy"]["value"] > 0.85
    assert report["above_chance"]
    assert before["counts"]["median verdict mass"] < 0.05
    assert after["counts"]["median verdict mass"] > 0.9, "it is trained to say a verdict"
    config = json.loads((runs["pointwise"] / "model" / "config.json").read_text())
    assert config["assay_template"] == "brief@1"


@pytest.mark.slow
def test_a_judge_of_single_responses_is_served_as_it_was_trained(
    runs: dict[str, Path], data: Path
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from assay.clients.judging.rendering import open_renderer
    from assay.genrm.judges import judge_response
    from assay.genrm.templates import load_templates
    from assay.trainer.recipes.reward_model import trainers
    from assay.trainer.recipes.reward_model.data import load_rows
    from assay.trainer.recipes.reward_model.encoding import encode_points

    config = settings(data, "pointwise")
    rows = load_rows(config).eval[:6]
    tokenizer = AutoTokenizer.from_pretrained(runs["pointwise"] / "model")
    folders = [data / "templates"]
    examples = encode_points(rows, open_renderer("brief", folders), tokenizer, config)
    model = AutoModelForCausalLM.from_pretrained(runs["pointwise"] / "model").eval()
    batch = trainers.PairCollator(tokenizer.pad_token_id)(examples.items)
    with torch.inference_mode():
        margins, masses = trainers.pair_verdicts(model, batch)
    expected = torch.sigmoid(margins * batch["signs"]).flatten().tolist()

    def ask(info: Any) -> list[Any]:
        brief = ResolvedJudgeSettings("brief", "token-probability", least_mass=0.0)
        templates = load_templates(folders)
        return [
            judge_response(CandidateResponse(chat(row), row.response), brief, info, templates)
            for row in rows
        ]

    answers = served(runs["pointwise"], ask)
    assert [answer.score for answer in answers] == pytest.approx(expected, abs=1e-5)
    held = masses.exp().flatten().tolist()
    assert [answer.verdict_mass for answer in answers] == pytest.approx(held, abs=1e-5)


@pytest.mark.slow
def test_a_judge_learns_to_write_critiques_that_can_be_read(
    runs: dict[str, Path], data: Path
) -> None:
    from assay.genrm.judges import judge_response
    from assay.genrm.templates import load_templates

    report = report_of(runs["critique"])
    assert report["after"]["counts"]["loss of a token"] < 0.2
    assert report["before"]["counts"]["loss of a token"] > 4
    assert "closing verdict" in report["after"]["figures"]

    def ask(info: Any) -> list[Any]:
        how = ResolvedJudgeSettings(
            "brief-critique", "consensus", votes=2, max_tokens=40, temperature=0.5
        )
        templates = load_templates([data / "templates"])
        return [
            judge_response(CandidateResponse((chat_of("Say 7"),), text), how, info, templates)
            for text in ("fine red\nfine old", "awful red\nawful old")
        ]

    fine, awful = served(runs["critique"], ask)
    assert fine.unparsed_votes + awful.unparsed_votes <= 1, "of four"
    assert all("Verdict: " in vote.text for one in (fine, awful) for vote in one.votes)


@pytest.mark.slow
def test_critiques_that_agree_become_rows_to_learn_from(
    runs: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    """SPARK's stages 1 and 2: a served judge criticises, what agrees is trained on."""
    asked = [{"prompt": f"Say {n}", "response": "fine red\nawful old"} for n in range(6)]
    rows, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    served_by = f"--model=judge={runs['critique'] / 'model'}", f"--templates={data / 'templates'}"
    with running(*served_by) as (address, _):
        told = [str(rows), str(out), "--target", address, "--template", "brief-critique"]
        more = ["--votes", "4", "--max-tokens", "40", "--keep", "2"]
        done = CliRunner().invoke(label_critiques, [*told, *more])
        assert done.exit_code == 0, done.output
        found = [json.loads(line) for line in out.read_text().splitlines()]
        assert len({row["key"] for row in found}) >= 4
        assert "kept: " in done.output
        again = CliRunner().invoke(label_critiques, [*told, *more])
        assert again.exit_code == 0, again.output
        assert f"{len({row['key'] for row in found})} of 6 responses are in" in again.output
        labels = tmp_path / "steps.jsonl"
        words = [told[0], str(labels), *told[2:], *more, "--write", "steps"]
        done = CliRunner().invoke(label_critiques, words)
        assert done.exit_code == 0, done.output
        for row in map(json.loads, labels.read_text().splitlines()):
            assert row["steps"] == ["fine red\n", "awful old"]
            assert len(row["labels"]) == 2
            assert set(row["labels"]) <= {0, 1}
            assert (row["share"] > 0.5) <= all(row["labels"])
    own = {"data": {"paths": [str(out)]}, "eval": {"prompts": 0}, "run": {"steps": 1}}
    assert train(settings(data, "critique", **own), tmp_path / "run") is not None


def test_what_disagrees_with_the_majority_is_left_out() -> None:
    def said(*verdicts: bool, final: bool) -> str:
        lines = [f"Step {n}: {'correct' if v else 'wrong'}" for n, v in enumerate(verdicts, 1)]
        return "\n".join([*lines, f"Verdict: {'correct' if final else 'wrong'}"])

    most = said(True, False, final=False)
    other_step = said(False, False, final=False)
    other_whole = said(True, True, final=True)
    texts = [other_whole, most, "no verdicts", other_step, most]
    kept, counts = agreeing(texts, "one\ntwo", by="steps", most=9)
    assert kept == [most, most]
    assert counts == {"unreadable": 1, "disagreeing": 2}
    kept, counts = agreeing(texts, "one\ntwo", by="whole", most=9)
    assert kept == [most, other_step, most]
    assert counts == {"unreadable": 1, "disagreeing": 1}
    assert agreeing(texts, "one\ntwo")[0] == [most]
    assert agreeing(["nothing"], "one\ntwo") == ([], {"unreadable": 1})


def test_the_majority_labels_each_step_and_the_whole() -> None:
    from assay.clients.rows.points import point_of
    from assay.clients.rows.preferences import steps_of

    def said(*verdicts: bool, final: bool) -> str:
        lines = [f"Step {n}: {'correct' if v else 'wrong'}" for n, v in enumerate(verdicts, 1)]
        return "\n".join([*lines, f"Verdict: {'correct' if final else 'wrong'}"])

    texts = [said(True, False, final=False)] * 2 + [said(False, False, final=False), "nothing"]
    for response in ("one\ntwo", "one\n\ntwo"):
        found, unreadable = consensus(texts, response)
        assert found is not None
        assert (found.steps, found.final, unreadable) == ((True, False), False, 1)
        row = steps_of({"problem": "q", **labelled(found, response, "steps")})
        assert (row.response, row.labels) == (response, (1.0, -1.0))
        point = point_of({"prompt": "q", **labelled(found, response, "whole")})
        assert (point.response, point.right) == (response, False)
    even, _ = consensus([said(True, final=True), said(False, final=False)], "one")
    assert even is not None
    assert (even.steps, even.final) == ((False,), False)  # a tie is no majority
    assert consensus(["nothing"], "one") == (None, 1)


def chat_of(text: str) -> Any:
    from assay.genrm.domain import ChatMessage

    return ChatMessage("user", text)


def test_only_what_the_judge_writes_is_learned() -> None:
    import torch

    from assay.trainer.recipes.reward_model.objectives import critique_loss
    from assay.trainer.recipes.reward_model.trainers import CritiqueCollator

    examples = [
        {"ids": [5, 6, 7, 8], "written": 2, "place": 0, "options": [7, 9]},
        {"ids": [5, 7, 8], "written": 1, "place": 0, "options": [8, 9]},
    ]
    batch = CritiqueCollator(0)(examples)
    assert batch["written"].tolist() == [[0, 0, 1, 1], [0, 0, 1, 0]]
    assert batch["places"].tolist() == [2, 2]
    logits = torch.zeros(2, 4, 10)
    flat = critique_loss(logits, batch["ids"], batch["written"])
    assert flat.item() == pytest.approx(torch.log(torch.tensor(10.0)).item())
    logits[0, 0] = 100.0 * torch.arange(10)  # the prompt's own next token: not learned
    logits[1, 2] = 100.0 * torch.arange(10)  # behind the end: not learned
    assert critique_loss(logits, batch["ids"], batch["written"]) == flat


def test_critiques_that_cannot_be_read_stop_or_are_counted(data: Path, tmp_path: Path) -> None:
    rows = [critique(number, random.Random(number)) for number in range(20)]
    rows += [{**rows[0], "critique": "It is all fine."}, {**rows[1], "critique": "Verdict: wrong"}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own: dict[str, Any] = {
        "data": {"paths": [str(file)]},
        "eval": {"prompts": 0},
        "run": {"steps": 1},
    }
    with pytest.raises(ConfigError, match=r"2 critiques cannot be read .*bad_rows"):
        train(settings(data, "critique", **own), tmp_path / "run")
    own["data"]["bad_rows"] = "skip"
    report = train(settings(data, "critique", **own), tmp_path / "again")
    assert report is not None
    assert report["run"]["training_rows"] == 20


def test_pairs_are_points_too(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    rows = [{"prompt": f"p {n}", "chosen": "fine", "rejected": "awful"} for n in range(8)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    own = {"data": {"paths": [str(file)]}, "eval": {"prompts": 2}, "run": {"steps": 1}}
    report = train(settings(data, "pointwise", **own), tmp_path / "run")
    assert report is not None
    assert report["run"]["training_rows"] == 12


def test_without_a_template_the_rows_choose(tmp_path: Path) -> None:
    """With a ground truth on every row `correctness`, else `quality`; `tiny` knows the words."""
    for name, gold in (("correctness@2", {"ground_truth": "4"}), ("quality@2", {})):
        file = tmp_path / f"{name}.jsonl"
        rows = [{"prompt": f"p {n}", "response": "fine", "label": n % 2, **gold} for n in range(8)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        tree = {
            "model": {"name": "tiny", "device": "cpu"},
            "tiny": {"hidden": 32, "layers": 1, "vocabulary": 900},
            "data": {"paths": [str(file)]},
            "method": {"kind": "pointwise"},
            "eval": {"prompts": 0},
            "run": {"steps": 1, "checkpoint_every": 0},
        }
        assert train(configs.build(tree, origin="test"), tmp_path / name) is not None
        config = json.loads((tmp_path / name / "model" / "config.json").read_text())
        assert config["assay_template"].split("@")[0] == name.split("@")[0]


LORA = {"rank": 4, "alpha": 8, "target_modules": ["q_proj", "v_proj", "up_proj"]}


def on(base: Path, data: Path, kind: str, **sections: dict[str, Any]) -> configs.RmConfig:
    model = {"name": str(base / "model"), "lora": LORA}
    return settings(data, kind, model=model, **sections)


def test_adapters_alone_learn_and_are_merged(
    runs: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    """The served model is the base plus the adapter; what is no target is as it was."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    base = runs["pointwise"]
    report = train(on(base, data, "pointwise", run={"steps": 12}), tmp_path / "run")
    assert report is not None
    assert report["after"]["figures"]["AUC"]["value"] > 0.9
    whole = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model")
    beneath = AutoModelForCausalLM.from_pretrained(base / "model")
    adapted = PeftModel.from_pretrained(beneath, tmp_path / "run" / "adapter")
    ids = torch.arange(3, 23)[None]
    with torch.inference_mode():
        expected = adapted(ids).logits
        assert torch.allclose(whole(ids).logits, expected, atol=1e-4)
        with adapted.disable_adapter():
            assert not torch.allclose(adapted(ids).logits, expected, atol=1e-3)
    frozen, moved = whole.state_dict(), AutoModelForCausalLM.from_pretrained(base / "model")
    kept = [n for n, w in moved.state_dict().items() if torch.equal(w, frozen[n])]
    assert any("k_proj" in name for name in kept)
    assert not any("q_proj" in name for name in kept)


@pytest.mark.slow
def test_a_run_with_adapters_continues_its_curve(
    runs: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    limits = {"steps": 6, "checkpoint_every": 3, "keep_checkpoints": 2}
    config = on(runs["pointwise"], data, "pointwise", run=limits)
    train(config, tmp_path / "run")
    before = curve(tmp_path / "run")
    for left in ("model", "adapter", "checkpoints/checkpoint-6"):
        shutil.rmtree(tmp_path / "run" / left)
    train(config, tmp_path / "run")
    assert curve(tmp_path / "run") == before
    assert (tmp_path / "run" / "adapter" / "adapter_config.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bradley-terry", "prm"])
def test_a_new_head_learns_whole_beside_adapters(
    runs: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    dice, rows = random.Random(1), []
    for number in range(60):
        asked = f"Say {number}"
        if kind == "prm":
            labels = [dice.randint(0, 1) for _ in range(3)]
            steps = [f"{('awful', 'fine')[label]} {dice.choice(WORDS)}" for label in labels]
            rows.append({"problem": asked, "steps": steps, "labels": labels})
        else:
            rows.append({"prompt": asked, "chosen": "fine red", "rejected": "awful red"})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    tree = {
        "model": {"name": str(runs["pointwise"] / "model"), "device": "cpu", "lora": LORA},
        "data": {"paths": [str(file)], "max_tokens": 256},
        "method": {"kind": kind},
        "optim": {"learning_rate": 3e-3, "batch": 8},
        "eval": {"prompts": 20},
        "run": {"steps": 25, "checkpoint_every": 0},
    }
    report = train(configs.build(tree, origin="test"), tmp_path / "run")
    assert report is not None
    assert report["above_chance"], report["after"]["figures"]
    shape = AutoConfig.from_pretrained(tmp_path / "run" / "model")
    assert (shape.num_labels == 1) == (kind == "bradley-terry")
    if kind == "bradley-terry":
        AutoModelForSequenceClassification.from_pretrained(tmp_path / "run" / "model")


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ({"lora": {"rank": 4}}, "tiny has only random weights"),
        ({"name": "m", "lora": {"rank": 4}, "train_layers": 1}, "both say what learns"),
        ({"name": "m", "lora": {"base": "bfloat16"}}, "set model.lora.rank"),
    ],
)
def test_adapters_that_cannot_be_are_told(data: Path, model: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings(data, "pointwise", model=model)
