"""Settings: what is read, what is refused, and in what words."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.recipes.code_prm import config as pipelines
from assay.trainer.recipes.ladder import plan
from assay.trainer.recipes.reward_model import config as rm_configs
from assay.trainer.settings import config


def test_the_whole_config_is_saved_and_read_back(tmp_path: Path) -> None:
    made = config.build(
        {
            "data": {
                "examples": [{"user": 'say "\x7f\u20ac\\"', "assistant": "1\n"}],
                "task_config": {"a": 1, "b c": True},
            }
        },
        ["optim.learning_rate=1e-5", "reward.parameters.format_weight=0.1"],
        origin="test",
    )
    path = tmp_path / "config.toml"
    path.write_text(config.to_toml(made), encoding="utf-8")
    assert config.load(path) == made


@pytest.mark.parametrize("name", ["quickstart", "gsm8k"])
def test_the_configs_of_the_repository_are_valid(repository: Path, name: str) -> None:
    made = config.load(repository / "configs" / f"{name}.toml", ["data=rows.jsonl"])
    assert (made.data.source, made.data.path) == ("jsonl", "rows.jsonl")
    assert made.eval.prompts >= 120


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("optim.learning_rate=1e-5", "optim.learning_rate", 1e-5),
        ("optim.learning_rate=1", "optim.learning_rate", 1.0),
        ("run.name=42", "run.name", "42"),
        ("run.name='a b'", "run.name", "a b"),
        ("model.name=./some folder", "model.name", "./some folder"),
        ("reward.target=127.0.0.1:50051", "reward.target", "127.0.0.1:50051"),
        ("data.template=What is {question}?", "data.template", "What is {question}?"),
        ("model.gradient_checkpointing=true", "model.gradient_checkpointing", True),
        ("data.task_config.min_terms=3", "data.task_config", {"min_terms": 3}),
        ("data.columns.prompt=problem", "data.columns.prompt", "problem"),
    ],
)
def test_overrides(override: str, key: str, value: object) -> None:
    node: object = config.build({}, [override], origin="test")
    for part in key.split("."):
        node = getattr(node, part)
    assert node == value


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "optim.learnig_rate=1",
            "optim.learnig_rate is not a setting; did you mean optim.learning_rate? known here: ",
        ),
        ("optm.learning_rate=1", "optm is not a setting; did you mean optim?"),
        ("data.columns.promt=x", "did you mean data.columns.prompt?"),
        ("optim.learning_rate=fast", 'optim.learning_rate: expected number, got "fast"'),
        ("optim.learning_rate=-1", "optim.learning_rate: expected greater than or equal to 0"),
        ("optim.learning_rate=inf", "optim.learning_rate: expected a finite number"),
        ("run.steps=1.5", "run.steps: expected integer, got 1.5"),
        ("run.steps=true", "run.steps: expected integer, got true"),
        ("rollout.group_size=0", "rollout.group_size: expected greater than or equal to 1"),
        ("rollout.group_size=1", "rollout.group_size = 1 leaves nothing to compare within a group"),
        ("optim.mini_batches=3", "optim.mini_batches = 3 does not divide the 32 samples of a step"),
        (
            "method.loss.dual_clip=0.5",
            "method.loss.dual_clip and method.loss.pre_clip are above 1",
        ),
        (
            "method.loss={kl_coef=0.1, kl_estimator='k1', kl_gradient='plain'}",
            "has no gradient in the mean",
        ),
        (
            "method.loss={importance_correction='decoupled', ratio='sequence'}",
            "is an objective of its own",
        ),
        ("method.shaping.overlong=soft", "needs method.shaping.overlong_cache between 1 and"),
        ("data.source=csv", "expected 'reasoning_gym', 'jsonl', 'hub' or 'mixture', got \"csv\""),
        ("data.examples=[{user='a'}]", "data.examples.0.assistant is missing"),
        ("reward.max_fault_ratio=2", "reward.max_fault_ratio: expected less than or equal to 1"),
        ("reward.token_file=x", "reward.token_file is for reward.target"),
        ("run.seed=1979-05-27", "run.seed: expected integer"),
        ("data.source=jsonl", 'data.path is missing, which data.source = "jsonl" needs'),
        ("data.source=hub", "data.name is missing"),
        ("steps=3", "is not of the form section.key=value"),
        ("run.steps", "is not of the form section.key=value"),
        ("run.steps.more=3", "run.steps: expected integer"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.build({}, [override], origin="test.toml")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_lie_between_two_ends() -> None:
    bins = {"advantage": {"estimator": "gae"}, "critic": {"loss": "two-hot", "value_min": 2}}
    with pytest.raises(ConfigError, match=r"value_min = 2 is not below value_max = 1"):
        config.build({"method": bins}, origin="t")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"tls_cert": "x", "tls_ca": "y"}, "reward.tls_cert and reward.tls_key go together"),
        ({"tls_cert": "x", "tls_key": "y"}, "reward.tls_cert needs reward.tls_ca"),
        ({"tls_key": "x", "tls_ca": "y"}, "reward.tls_cert and reward.tls_key go together"),
    ],
)
def test_half_a_certificate_is_refused(files: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config.build({"reward": {"target": "h:1", **files}}, [], origin="test.toml")


def test_a_file_of_another_command_names_it(repository: Path, tmp_path: Path) -> None:
    configs = repository / "configs"
    loads = {
        "assay train": lambda path: config.load(path, ["data.path=rows.jsonl"]),
        "assay train-rm": lambda path: rm_configs.load(path, []),
        "assay ladder": lambda path: plan.load(path, []),
        "assay code-prm": lambda path: pipelines.load(path, [], tmp_path),
    }
    files = {
        "assay train": [configs / "quickstart.toml", configs / "dapo.toml"],
        "assay train-rm": [configs / "rm-quickstart.toml"],
        "assay ladder": [configs / "ladders" / "dapo.toml"],
        "assay code-prm": [configs / "pipelines" / "code_prm.toml"],
    }
    for command, load in loads.items():
        for right, paths in files.items():
            for path in paths if right != command else ():
                with pytest.raises(ConfigError, match=f"it looks like a file of `{right}`$"):
                    load(path)


def test_a_misspelt_file_is_suggested(repository: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"not exist; did you mean 'dapo\.toml'\?; presets are archer,"
    ):
        config.load(repository / "configs" / "dpao.toml")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("[run\n")
    with pytest.raises(ConfigError, match=r"broken\.toml is not valid TOML: .*line 1"):
        config.load(broken)
    with pytest.raises(ConfigError, match="does not exist"):
        config.load(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(tmp_path)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot be read"):
        config.load(broken)
    broken.write_text("[run]\nsteps = 'many'\n")
    with pytest.raises(
        ConfigError, match=r"broken\.toml: run\.steps: expected integer, got \"many\""
    ):
        config.load(broken)


def test_saved_settings_hold_every_key() -> None:
    tree = tomllib.loads(config.to_toml(config.Config()))
    assert config.build(tree, origin="test") == config.Config()
    assert set(tree) == {
        *("model", "data", "reward", "method", "optim", "rollout", "eval", "run", "trl", "ablate"),
    }


@pytest.mark.parametrize(("scale", "refused"), [("none", False), ("batch", False), ("group", True)])
def test_a_reward_that_nothing_is_taken_from_needs_no_second_sample(
    scale: str, refused: bool
) -> None:
    tree = {
        "method": {"advantage": {"estimator": "plain", "scale": scale}},
        "rollout": {"group_size": 1},
    }
    if not refused:
        assert config.build(tree, origin="test").rollout.group_size == 1
        return
    with pytest.raises(ConfigError, match="leaves nothing to compare"):
        config.build(tree, origin="test")
