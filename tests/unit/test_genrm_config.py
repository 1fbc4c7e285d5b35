"""The settings of genrm: files of models, shortcuts, and what is wrong with them in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.genrm.config import ModelsConfig, RunnerConfig, gather_models, read_models
from assay.genrm.engines.config import EngineConfig
from assay.kit.errors import ConfigError

FILE = """
default = "judge"

[model.judge]
path = "./judge"
chat_template = "../chat.jinja"
max_concurrent = 4

[model.remote]
path = "some/name"
engine = "openai"
base_url = "http://127.0.0.1:1/v1"
vllm = { a = 1, b = "x" }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "configs" / "models.toml"
    path.parent.mkdir()
    path.write_text(FILE, encoding="utf-8")
    return path


def test_a_file_of_models(file: Path) -> None:
    config = read_models(file)
    assert list(config.model) == ["judge", "remote"]
    assert config.default == "judge"
    assert config.model["remote"].path == "some/name"
    assert config.model["remote"].vllm == {"a": 1, "b": "x"}


def test_paths_with_a_dot_are_relative_to_the_file(file: Path) -> None:
    judge = read_models(file).model["judge"]
    assert judge.path == str(file.parent / "judge")
    assert judge.chat_template == str(file.parent.parent / "chat.jinja")


def test_a_link_stays_a_link_for_what_it_leads_to_may_change(file: Path) -> None:
    (file.parent / "real").mkdir()
    (file.parent / "judge").symlink_to(file.parent / "real")
    assert read_models(file).model["judge"].path == str(file.parent / "judge")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('base = "nobody"', "base = 'nobody' is none of the models: judge, remote, lora"),
        ('base = "lora"', "base = 'lora' is an adapter itself"),
        ('base = "remote"', "base = 'remote' runs in openai.*--lora-modules"),
        ('base = "judge"\n[model.judge]\npath = "j"\nreload = true', "base = 'judge' reloads"),
        ('device = ["cpu", 1]', r"device.*expected string"),
        ('quantization = "int3"', "quantization: expected 'none', 'bnb-int8'"),
        ("replicas = 0", "replicas: expected"),
    ],
)
def test_bases_and_places_that_do_not_go_together(file: Path, more: str, words: str) -> None:
    text = FILE + f'\n[model.lora]\npath = "./lora"\n{more}\n'
    if "[model.judge]" in more:
        text = text.replace(FILE.split("[model.remote]", maxsplit=1)[0], "")
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words) as caught:
        read_models(file)
    assert "\n" not in str(caught.value)


def test_devices_are_one_or_several(file: Path) -> None:
    more = '\n[model.two]\npath = "p"\ndevice = ["cuda:0", "cuda:1"]\nreplicas = 2\n'
    file.write_text(FILE + more, encoding="utf-8")
    places = read_models(file).model["two"].places
    assert places == ("cuda:0", "cuda:0", "cuda:1", "cuda:1")


def test_shortcuts_come_after_the_file(file: Path) -> None:
    config = gather_models(file, ["extra = ./folder", "x=y=z"])
    assert list(config.model) == ["judge", "remote", "extra", "x"]
    assert config.model["extra"] == EngineConfig(path="./folder")
    assert config.model["x"].path == "y=z"


@pytest.mark.parametrize(
    ("shortcuts", "message"),
    [
        ([], "there is no model to serve"),
        (["folder"], "not of the form NAME=PATH"),
        (["=folder"], "not of the form NAME=PATH"),
        (["a="], "not of the form NAME=PATH"),
        (["a=x", "a=y"], "there is a model 'a' already"),
        (["a/b=x"], "is no name for a model"),
        ([f"{'n' * 65}=x"], "is no name for a model"),
    ],
)
def test_shortcuts_that_are_wrong(shortcuts: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        gather_models(None, shortcuts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model.a]\n", "path"),
        ("[model.a]\npath = 'x'\nengine = 'none'\n", "engine"),
        ("[model.a]\npath = 'x'\nmax_batch_item = 3\n", "did you mean model.a.max_batch_items"),
        ("[model.a]\npath = 'x'\ncontext_tokens = -1\n", "context_tokens"),
        ("[models.a]\npath = 'x'\n", "models"),
        ("default = 'b'\n[model.a]\npath = 'x'\n", "default = 'b' is none of the models: a"),
        ("default_steps = 'b'\n[model.a]\npath = 'x'\n", "default_steps = 'b'"),
        ("[model.a]\npath = ''\n", "path"),
        ("[model", "not valid TOML"),
    ],
)
def test_files_that_are_wrong_say_so_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "models.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"models\.toml") as caught:
        gather_models(path, [])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not exist; configs/models\.toml is one"):
        gather_models(tmp_path / "none.toml", [])


def test_the_example_in_configs_is_sound(repository: Path) -> None:
    config = read_models(repository / "configs" / "models.toml")
    assert list(config.model) == ["smollm2"]


@pytest.mark.parametrize(
    ("wrong", "flag"), [({"queue_items": 0}, "--queue-items"), ({"queue_mb": 1}, "--queue-mb")]
)
def test_numbers_out_of_range(wrong: dict[str, int], flag: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        RunnerConfig(ModelsConfig(), **wrong)  # type: ignore[arg-type]
