"""Old names of tables: they load under the new ones, and say so in a line each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.recipes.code_prm import config as pipelines
from assay.trainer.recipes.ladder import plan
from assay.trainer.settings import config as configs
from assay.trainer.settings.aliases import RENAMED, UNTIL, VALUES

# A key of each old table, with a value that it does not have by itself.
OLD: Mapping[str, tuple[str, object]] = {
    "algorithm": ("name", "mine"),
    "cotraining": ("enabled", True),
    "rollout.fire": ("enabled", True),
    "data.selection.hints": ("enabled", True),
}
NEEDED = ("data=rows.jsonl", "data.columns.solution=steps")
"""By method.hints."""
OLD_HEADERS = {
    "[method.cotraining]": "[cotraining]",
    "[method.fire]": "[rollout.fire]",
    "[method.hints]": "[data.selection.hints]",
}


def tables(path: str, key: str, value: object) -> dict[str, Any]:
    """Nested tables that hold one value."""
    tree: dict[str, Any] = {key: value}
    for name in reversed(path.split(".")):
        tree = {name: tree}
    return tree


def value_at(config: Any, path: str) -> Any:
    for name in path.split("."):
        config = getattr(config, name)
    return config


def line_of(origin: str, old: str) -> str:
    return f"{origin}: [{old}] is now [{RENAMED[old]}]; the old name works until {UNTIL}"


def test_every_old_name_is_tried_here_and_leads_somewhere() -> None:
    assert OLD.keys() == RENAMED.keys()
    for old, new in RENAMED.items():
        assert value_at(configs.Config(), new)
        with pytest.raises(AttributeError):
            value_at(configs.Config(), old)


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_table_of_a_file_is_read_as_the_new_one(old: str) -> None:
    key, value = OLD[old]
    said: list[str] = []
    made = configs.build(tables(old, key, value), NEEDED, origin="file", say=said.append)
    assert made == configs.build(tables(RENAMED[old], key, value), NEEDED, origin="file")
    assert made != configs.Config()
    assert said == [line_of("file", old)]


@pytest.mark.parametrize("old", RENAMED)
def test_an_old_name_of_an_override_is_read_as_the_new_one(old: str) -> None:
    key, value = OLD[old]
    said: list[str] = []
    made = configs.build(
        {}, [f"{old}.{key}={json.dumps(value)}", *NEEDED], origin="x", say=said.append
    )
    assert made == configs.build(tables(RENAMED[old], key, value), NEEDED, origin="x")
    assert made != configs.Config()
    assert said == [line_of("x", old)]


@pytest.mark.parametrize("old", [old for old in RENAMED if "." in old])
def test_an_override_of_a_whole_old_table_is_read_too(old: str) -> None:
    key, value = OLD[old]
    made = configs.build(
        {}, [f"{old}={{{key} = {json.dumps(value)}}}", *NEEDED], origin="x", say=lambda _line: None
    )
    assert made == configs.build(tables(RENAMED[old], key, value), NEEDED, origin="x")


def test_tables_below_an_old_one_go_with_it() -> None:
    tree = {"algorithm": {"name": "mine", "loss": {"kl_coef": 0.1}}, "method": {"loss": {}}}
    overrides = ["algorithm.loss.clip_high=0.28", "method.loss.clip_low=0.1"]
    said: list[str] = []
    made = configs.build(tree, overrides, origin="x", say=said.append).method
    assert (made.name, made.loss.kl_coef) == ("mine", 0.1)
    assert (made.loss.clip_low, made.loss.clip_high) == (0.1, 0.28)
    assert said == [line_of("x", "algorithm")], "once, however often it was met"
    assert tree["algorithm"]["loss"] == {"kl_coef": 0.1}, "the tables given are left as they are"


@pytest.mark.parametrize("old", RENAMED)
def test_a_key_under_both_names_is_an_error(old: str) -> None:
    key, value = OLD[old]
    tree = plan.merged(tables(old, key, value), tables(RENAMED[old], key, value))
    wanted = f"x: {old}.{key} is now {RENAMED[old]}.{key}, and both are given; take one out"
    with pytest.raises(ConfigError, match=f"^{re.escape(wanted)}$"):
        configs.build(tree, origin="x", say=lambda _line: None)


def test_a_value_where_a_table_should_be_is_said_in_a_line() -> None:
    with pytest.raises(ConfigError, match=r"^x: method: method is a value, not a section$"):
        configs.build({"algorithm": {"name": "a"}, "method": 3}, origin="x")
    with pytest.raises(ConfigError, match="cotraining is not a setting"):
        configs.build({"cotraining": 3}, origin="x")


def test_names_of_today_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    configs.build({"method": {"fire": {"enabled": True}}}, ["method.name=a"], origin="x")
    assert capsys.readouterr() == ("", "")


def test_lines_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configs.build({}, ["algorithm.name=a"], origin="x")
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"note: {line_of('x', 'algorithm')}\n"


@pytest.mark.parametrize("name", ["dapo", "tango", "pag"])
def test_settings_that_an_earlier_release_saved_are_read(
    repository: Path, tmp_path: Path, name: str
) -> None:
    overrides = ["data=rows.jsonl", "model=org/model", "ablate=clip-higher"]
    config = configs.load(
        repository / "configs" / f"{name}.toml", overrides[: 2 + (name != "tango")]
    )
    text = configs.to_toml(config)
    for new, old in OLD_HEADERS.items():
        assert text.count(new) == 1
        text = text.replace(new, old)
    text = text.replace("[method]", "[algorithm]").replace("[method.", "[algorithm.")
    assert "method" not in re.findall(r"^\[(\w+)", text, re.MULTILINE)
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    said: list[str] = []
    assert configs.load(path, say=said.append) == config
    assert said == [line_of(str(path), old) for old in RENAMED]


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def laid(tmp_path: Path, repository: Path) -> Callable[[str], Path]:
    """A ladder beside a base of today."""
    base = (repository / "configs" / "dapo.toml").read_text(encoding="utf-8")
    written(tmp_path / "dapo.toml", base)
    return lambda text: written(tmp_path / "ladders" / "mine.toml", text)


def test_a_ladder_with_old_names_changes_a_base_with_new_ones(
    laid: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = laid(
        'base = "../dapo.toml"\nseeds = [0, 1, 2]\n'
        "overrides = { algorithm.loss.clip_high = 0.3 }\n"
        '[[rung]]\nname = "one"\n'
        '[[rung]]\nname = "two"\noverrides = { algorithm.loss.clip_high = 0.4 }\n'
    )
    ladder = plan.load(path, ["data=rows.jsonl", "model=m", "algorithm.loss.clip_low=0.1"])
    found = [[c.method.loss for c in rung.configs.values()] for rung in ladder.rungs]
    assert [{one.clip_high for one in rung} for rung in found] == [{0.3}, {0.4}]
    assert {one.clip_low for rung in found for one in rung} == {0.1}
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(set(lines)) == 3, "of the command, of all rungs and of one"


def test_a_pipeline_with_old_names_changes_a_base_with_new_ones(
    repository: Path, tmp_path: Path
) -> None:
    path = repository / "configs" / "pipelines" / "code_prm.toml"
    own = written(tmp_path / "configs" / "pipelines" / "mine.toml", path.read_text())
    for name in ("code_prm.toml", "rm-code.toml"):
        written(tmp_path / "configs" / name, (repository / "configs" / name).read_text())
    changed = "train.dense.algorithm.critic.learning_rate=7e-5"
    made = pipelines.load(own, [changed], tmp_path / "run")
    assert made.dense.method.critic.learning_rate == 7e-5
    assert made.baseline.method.critic.learning_rate != 7e-5


@pytest.mark.parametrize(
    ("tree", "overrides", "source"),
    [
        ({"data": {"path": "rows.jsonl"}}, [], "jsonl"),
        ({}, ["data.path=rows.jsonl"], "jsonl"),
        ({"data": {"path": "rows.jsonl"}}, ["data.source=reasoning_gym"], "reasoning_gym"),
        ({"data": {"name": "name/of-a-set"}}, [], "hub"),
        ({}, ["data.name=name/of-a-set"], "hub"),
        ({"data": {"path": "rows.jsonl"}}, ["data.name=name/of-a-set"], "hub"),
        ({"data": {"name": "name/of-a-set"}}, ["data.path=rows.jsonl"], "jsonl"),
        ({"data": {"source": "hub", "name": "a"}}, ["data=rows.jsonl"], "jsonl"),
        ({"data": {"path": ""}}, [], "reasoning_gym"),
        ({}, ["data=name/of-a-set"], "hub"),
    ],
)
def test_a_path_without_a_source_is_read(
    tree: dict[str, Any], overrides: list[str], source: str
) -> None:
    """Training on another data set than the one that is named would be a wrong result."""
    made = configs.build(tree, overrides, origin="test")
    assert made.data.source == source


@pytest.mark.parametrize(("path", "old"), VALUES)
def test_an_old_value_is_read_as_the_new_one(path: str, old: str, tmp_path: Path) -> None:
    new, (*above, key) = VALUES[path, old], path.split(".")
    note = f'{path} = "{old}" is now "{new}"; the old name works until {UNTIL}'
    file = tmp_path / "old.toml"
    file.write_text(f'[{".".join(above)}]\n{key} = "{old}"\n', encoding="utf-8")
    said: list[str] = []
    assert value_at(configs.load(file, say=said.append), path) == new
    assert said == [f"{file}: {note}"]
    told: list[str] = []
    assert value_at(configs.build({}, [f"{path}={old}"], origin="t", say=told.append), path) == new
    assert told == [f"t: {note}"]
    with pytest.raises(ConfigError):
        configs.build({}, [f"{path}=never-was"], origin="t")
