"""`assay contamination` on a tiny model: its figures, its exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.cli.main import run as command
from assay.kit.runs.stats import auc
from assay.trainer.recipes.contamination.answering import Respondent, read_rows, respondent
from assay.trainer.recipes.contamination.running import settings_of
from assay.trainer.recipes.contamination.scores import entropy_similarity
from assay.trainer.settings import config as configs
from trainer_support import SUMS


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Suspect rows, every other one a member, and clean ones."""

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    rows = [{"id": f"r{n}", "prompt": f"{a}+{b}=", "member": n % 2 == 0}
            for n, (a, b) in enumerate(SUMS[3::9][:10])]  # fmt: skip
    return write("rows.jsonl", rows), write(
        "clean.jsonl", [{"question": f"{a}+{b}="} for a, b in SUMS[4::9][:10]]
    )


def asked(model: Path, rows: Path, *more: str) -> int:
    """Runs the command; gives its exit code."""
    own = ["--max-new-tokens", "6", "model.device=cpu", "eval.batch_size=4"]
    return command(["contamination", str(model), "--data", str(rows), *own, *more])


def test_the_figures_are_those_of_the_scores(
    tiny_model: Path,
    files: tuple[Path, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    rows, clean = files
    out = tmp_path / "found.json"
    more = ["--against", str(clean), "--recall", "--samples", "3", "--json", str(out)]
    code = asked(tiny_model, rows, *more)
    found = json.loads(out.read_text())
    assert code == int(found["contaminated"])
    assert [row["id"] for row in found["rows"]] == [f"r{n}" for n in range(10)]
    assert len(found["clean"]) == 10
    for name in ("self-critique", "perplexity", "min-k", "min-k++", "recall", "cdd"):
        told = found["methods"][name]
        members = [(row["scores"][name], row["member"]) for row in found["rows"]]
        assert told["labels"]["auc"] == auc(members)
        both = [(row["scores"][name], True) for row in found["rows"]]
        both += [(row["scores"][name], False) for row in found["clean"]]
        assert told["against"]["auc"] == auc(both)
    said = capfd.readouterr().out
    assert ("contaminated: the rows score above" in said) == bool(found["contaminated"])
    assert asked(tiny_model, rows, "--rows", "3") == 0  # nothing to compare with
    assert "nothing is known of clean rows" in capfd.readouterr().out


def test_an_interrupted_audit_goes_on_and_finds_the_same(
    tiny_model: Path,
    files: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    rows, clean = files
    whole, out = tmp_path / "whole.json", tmp_path / "found.json"
    more = ["--against", str(clean), "--samples", "2", "--json"]
    code = asked(tiny_model, rows, *more, str(whole))
    answer, asked_about = Respondent.answers, []

    def answers(one: Respondent, some: list[Any], *, first: int, **how: Any) -> list[Any]:
        if len(asked_about) == 14:  # all suspect rows, and the first four clean ones
            raise KeyboardInterrupt
        asked_about.extend(row.id for row in some)
        return answer(one, some, first=first, **how)

    with monkeypatch.context() as patch:
        patch.setattr(Respondent, "answers", answers)
        capfd.readouterr()
        assert asked(tiny_model, rows, *more, str(out)) == 130
    assert "rows are kept in" in capfd.readouterr().err
    assert not out.exists()
    assert asked(tiny_model, rows, *more, str(out)) == code
    assert "going on: " in capfd.readouterr().err
    assert out.read_text() == whole.read_text()
    assert not list(tmp_path.glob("*.partial*"))


def test_answers_are_the_model_s_likeliest_and_are_read_from_it(
    tiny_model: Path, files: tuple[Path, Path]
) -> None:
    from assay.trainer.engines.models import load_policy

    model = {"name": str(tiny_model), "device": "cpu", "precision": "float32"}
    tree: dict[str, Any] = {"model": model}
    config = configs.build(tree, origin="test")
    rows, _ = read_rows(files[0], config)
    policy = load_policy(config.model, lambda _text: None)
    with respondent(config, policy, 6) as one:
        (answers,) = one.answers(rows[:1], first=0, perturbed=False, samples=0)
    prompt = policy.tokenizer(rows[0].problem.question)["input_ids"]
    ids = torch.tensor([[*prompt, *answers.first.ids]])
    with torch.no_grad():
        logps_TV = policy.model(input_ids=ids).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    assert logps_TV.argmax(dim=-1).tolist() == list(answers.first.ids)
    entropies_T = torch.distributions.Categorical(logits=logps_TV).entropy()
    assert answers.first.entropies_T == pytest.approx(entropies_T.tolist(), abs=1e-5)
    assert len(answers.second.ids) <= 12
    assert entropy_similarity(answers.first.entropies_T, answers.second.entropies_T) is not None


def test_a_run_brings_its_model_and_its_prompts(
    tiny_config: Callable[..., Any], files: tuple[Path, Path], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    (run / "model").mkdir(parents=True)
    own = tiny_config(data={"template": "Sum: {question}", "system": "Add."})
    (run / "config.toml").write_text(configs.to_toml(own))
    config = settings_of(str(run), ["data.system=Add it."], "paged")
    assert (config.model.name, config.rollout.backend) == (str(run / "model"), "paged")
    rows, _ = read_rows(files[0], config)
    asked_first = rows[0].problem
    assert asked_first.messages == (
        ("system", "Add it."),
        ("user", f"Sum: {asked_first.question}"),
    )
    assert [row.member for row in rows[:2]] == [True, False]


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ('{"prompt": "1+1=", "member": "yes"}', [], "'member' is 'yes', not true or false"),
        ('{"text": "1+1="}', [], "no column for the prompt"),
        ('{"prompt": "0+4="}', ["--against"], "is among the suspect rows too"),
        ('{"prompt": "1+1="}', ["--by", "cdd"], "--by cdd needs --samples"),
        ('{"prompt": "1+1="}', ["--by", "mink"], "there is no score 'mink'"),
        (f'{{"prompt": "{"1" * 600}"}}', [], "no room to answer"),
        ('{"prompt": "1+1="}', ["--json", "nowhere/o.json"], "the folder of"),
    ],
)
def test_what_cannot_be_run_exits_with_2(
    tiny_model: Path,
    files: tuple[Path, Path],
    capfd: pytest.CaptureFixture[str],
    *,
    text: str,
    more: list[str],
    message: str,
) -> None:
    rows = files[0].with_name("own.jsonl")
    rows.write_text(text)
    if more == ["--against"]:
        more = ["--against", str(rows)]
    assert asked(tiny_model, rows, *more) == 2
    assert message in " ".join(capfd.readouterr().err.split())
