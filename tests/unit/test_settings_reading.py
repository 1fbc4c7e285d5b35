"""A setting that the chosen mode does not read is an error, or is said to be left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.recipes.reward_model import config as rm_configs
from assay.trainer.records.folder import create, reopen
from assay.trainer.settings import config as configs
from assay.trainer.settings.reading import ReadWhere, unread

GAE = {"method": {"advantage": {"estimator": "gae"}}}
NOT_READ = [
    ({"data": {"task": "leg_counting", "source": "jsonl", "path": "r.jsonl"}}, [], "data.task"),
    ({"data": {"path": "r.jsonl", "source": "reasoning_gym"}}, [], "data.path"),
    ({"data": {"source": "reasoning_gym"}}, ["data.path=r.jsonl"], "data.path"),
    ({"data": {"source": "jsonl", "path": "r.jsonl"}}, ["data.name=a/b"], "data.name"),
    ({}, ["data=rows.jsonl", "data.subset=main"], "data.subset"),
    ({}, ["data=a/b", "data.eval_path=rows.jsonl"], "data.eval_path"),
    ({}, ["data.columns.solution=solution"], "data.columns.solution"),
    ({}, ["data.columns.tests=t", "data.columns.reference=answer"], "data.columns.reference"),
    ({"data": {"selection": {"mopps": {"pool": 3}}}}, [], "data.selection.mopps.pool"),
    ({"rollout": {"vllm": {"sleep": 1}}}, [], "rollout.vllm.sleep"),
    ({}, ["rollout.backend=vllm", "rollout.vllm.server_url=u"], "rollout.vllm.server_url"),
    ({}, ["eval.temperature=0.5"], "eval.temperature"),
    ({}, ["method.critic.learning_rate=1e-5"], "method.critic.learning_rate"),
    ({}, ["method.advantage.lam=0.9"], "method.advantage.lam"),
    (GAE, ["method.advantage.min_lam=0.9"], "method.advantage.min_lam"),
    (GAE, ["method.critic.bins=9"], "method.critic.bins"),
    ({}, ["method.advantage.difficulty_alpha=0.5"], "method.advantage.difficulty_alpha"),
    ({}, ["method.loss.importance_cap=4"], "method.loss.importance_cap"),
    ({}, ["method.dense.decay_to=0.1"], "method.dense.decay_to"),
    ({}, ["method.replay.mode=success"], "method.replay.mode"),
    ({}, ["method.turns.shaping=1"], "method.turns.shaping"),
    ({}, ["method.asynchrony.interrupt=true"], "method.asynchrony.interrupt"),
    ({}, ["method.shaping.cosine_exceed=-2"], "method.shaping.cosine_exceed"),
    ({}, ["method.filter.prof_keep=4"], "method.filter.prof_keep"),
]


@pytest.mark.parametrize(("tree", "overrides", "key"), NOT_READ)
def test_what_is_not_read_is_an_error_that_names_both(
    tree: dict[str, Any], overrides: list[str], key: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        configs.build(tree, overrides, origin="t")
    assert str(caught.value).startswith(f"t: {key} = ")
    assert " is read only where " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_contradiction_says_both_sides() -> None:
    with pytest.raises(ConfigError, match="reasoning_gym") as caught:
        configs.build({"data": {"source": "reasoning_gym"}}, ["data.path=r.jsonl"], origin="t")
    assert str(caught.value) == (
        't: data.path = "r.jsonl" is read only where data.source is "jsonl", and data.source = '
        '"reasoning_gym"; take one of the two out'
    )
    with pytest.raises(ConfigError, match=r"two data sets"):
        configs.build({}, ["data.path=r.jsonl", "data.name=a/b"], origin="t")
    with pytest.raises(ConfigError, match=r"contradict one another: .* data\.path=r\.jsonl"):
        configs.build({}, ["data.source=hub", "data.name=r.jsonl"], origin="t")


def test_what_the_file_has_for_another_mode_is_left_out_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    file = {"data": {"source": "reasoning_gym", "task": "leg_counting", "size": 7}}
    made = configs.build(file, ["data=rows.jsonl"], origin="t", say=said.append)
    assert said == ['t: left out, since data.source = "jsonl": data.task, data.size']
    assert made == configs.build({}, ["data=rows.jsonl"], origin="t")
    path = tmp_path / "config.toml"
    path.write_text(configs.to_toml(made), encoding="utf-8")
    assert configs.load(path, say=said.append) == made
    assert len(said) == 1


def test_what_lies_above_chooses_for_what_lies_beneath(repository: Path, tmp_path: Path) -> None:
    said: list[str] = []
    given = [f"over={repository / 'configs/scale/7b.toml'}", "data=rows.jsonl"]
    preset = repository / "configs" / "dapo.toml"
    made = configs.load(preset, [*given, "rollout.backend=hf"], say=said.append)
    assert made.rollout.vllm == configs.build({}, origin="t").rollout.vllm
    assert len(said) == 1
    assert 'since rollout.backend = "hf": rollout.vllm.' in said[0]
    wrong = tmp_path / "over.toml"
    wrong.write_text("[rollout.vllm]\nsleep = 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rollout\.vllm\.sleep = 1 is read only where"):
        configs.load(preset, [f"over={wrong}", "data=rows.jsonl"])


def test_a_part_that_is_switched_off_keeps_its_settings() -> None:
    tree = {"data": {"selection": {"name": "mopps", "mopps": {"pool": 3}}}}
    made = configs.build(tree, ["ablate=mopps"], origin="t")
    assert made.data.selection.mopps.pool == 3
    assert [one.key for one in unread(made)] == ["data.selection.mopps.pool"]


def test_a_run_of_before_goes_on_with_settings_that_it_never_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = create(configs.build({}, origin="t"), "x", tmp_path / "run")
    text = folder.config.read_text(encoding="utf-8").replace('path = ""', 'path = "r.jsonl"', 1)
    folder.config.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"data\.path"):
        configs.load(folder.config)
    (folder.checkpoints / "checkpoint-1").mkdir(parents=True)
    _, made = reopen(folder.path, [])
    assert (made.data.source, made.data.path) == ("reasoning_gym", "")
    assert 'left out, since data.source = "reasoning_gym": data.path' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tree", "key"),
    [
        ({"data": {"paths": ["a.jsonl"], "labels": "signed"}}, "data.labels"),
        ({"data": {"source": "jsonl", "paths": ["a.jsonl"], "name": "a/b"}}, "data.name"),
        ({"data": {"paths": ["a.jsonl"]}, "method": {"center": 0.1}}, "method.center"),
        ({"data": {"paths": ["a.jsonl"]}, "method": {"loss": "regression"}}, "method.loss"),
        ({"data": {"paths": ["a.jsonl"]}, "tiny": {"layers": 3}}, "tiny.layers"),
    ],
)
def test_the_training_of_reward_models_says_so_as_well(tree: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=rf"^t: {key} = .* is read only where "):
        rm_configs.build(tree, origin="t")
    assert rm_configs.build({"data": {"name": "a/b"}}, origin="t").data.source == "hub"


def marks(section: Any) -> Iterator[ReadWhere]:
    hints = get_type_hints(type(section), include_extras=True)
    for one in fields(section):
        told = getattr(hints[one.name], "__metadata__", ())
        yield from (mark for mark in told if isinstance(mark, ReadWhere))
        if is_dataclass(value := getattr(section, one.name)):
            yield from marks(value)


@pytest.mark.parametrize("kind", [configs.Config, rm_configs.RmConfig])
def test_every_mark_names_a_setting(kind: type[Any]) -> None:
    found = list(marks(kind()))
    assert len(found) > 5
    for mark in found:
        assert mark.holds(attrgetter(mark.key)(kind())) in {True, False}, mark.key
