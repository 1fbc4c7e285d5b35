"""A preset is found by its name, from any folder; a file of the user's own comes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.recipes.ladder import plan as ladders
from assay.trainer.recipes.reward_model import config as rm_config
from assay.trainer.settings import config as configs
from assay.trainer.settings import presets

DATA = ("data=rows.jsonl",)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("given", ["dapo", "dapo.toml", "configs/dapo.toml", "configs/dapo"])
def test_a_preset_has_a_name(given: str, repository: Path) -> None:
    found = configs.load(Path(given), DATA)
    assert found == configs.load(repository / "configs" / "dapo.toml", DATA)
    assert found.method.name == "dapo"


def test_every_preset_is_found_by_its_name(repository: Path) -> None:
    for path in (repository / "configs").rglob("*.toml"):
        name = path.relative_to(repository / "configs")
        name = name.with_name(name.name.removesuffix(".toml"))
        assert presets.find(name).read_bytes() == path.read_bytes()


def test_a_preset_is_laid_over_by_its_name() -> None:
    laid = configs.load(Path("dapo"), [*DATA, "over=scale/7b"])
    assert laid == configs.load(Path("dapo"), [*DATA, "over=configs/scale/7b.toml"])
    assert laid != configs.load(Path("dapo"), DATA)


def test_ladders_and_reward_models_have_names_too() -> None:
    assert ladders.load(Path("ladders/dapo"), DATA).rungs
    assert rm_config.load(Path("rm-pairwise"), ['data.paths=["pairs.jsonl"]'])


def test_a_file_of_the_users_own_comes_first(elsewhere: Path) -> None:
    (elsewhere / "dapo").write_text('[method]\nname = "mine"\n')
    assert configs.load(Path("dapo"), DATA).method.name == "mine"
    (elsewhere / "dapo").unlink()
    (elsewhere / "dapo").mkdir()  # a folder is no file
    assert configs.load(Path("dapo"), DATA).method.name == "dapo"


@pytest.mark.parametrize("given", ["../configs/dapo", "dapo.txt", "dapoo", "/dapo", ".", ""])
def test_what_is_neither_is_refused_with_the_presets(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        configs.load(Path(given), DATA)
    assert "cannot be read" in str(caught.value) or "presets are archer, areal," in str(
        caught.value
    )
