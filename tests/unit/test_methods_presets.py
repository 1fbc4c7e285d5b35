"""The presets: what each is made of, and that every published value in them is the published one.

A comment in a preset that names a source is a claim; presets_published.py lists them. A value that
changes, a claim that nobody wrote down here, and one whose source is gone from the file all fail.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from assay.environments.registry import environment_of, settings_of
from assay.kit.errors import ConfigError
from assay.trainer.explain.presets import departures, published
from assay.trainer.methods.dense.settings import METHOD as DENSE
from assay.trainer.recipes.ladder import plan
from assay.trainer.settings import config as configs
from assay.trainer.settings.registry import parts, parts_on
from presets_published import PUBLISHED

GIVEN = ["data=rows.jsonl", "model=org/model"]
METHODS = published()

_SETTING = re.compile(r"^(\w+) = [^#]*#\s*(.+)$")
_OURS = ("our choice", "the trainer punishes")


def file_of(repository: Path, name: str) -> Path:
    return repository / "configs" / f"{name}.toml"


def claims(path: Path) -> dict[str, str]:
    """Dotted keys whose comment names a source, with the comment."""
    found, section = {}, ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        match = _SETTING.match(line)
        if match and not match.group(2).startswith(_OURS):
            found[f"{section}.{match.group(1)}"] = match.group(2)
    return found


def value_at(node: Any, key: str) -> Any:
    for step in key.split("."):
        node = node[step] if isinstance(node, dict) else getattr(node, step)
    return node


def test_every_method_has_a_preset_and_a_table_here() -> None:
    assert set(PUBLISHED) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_preset_does_not_depart_from_its_method(repository: Path, name: str) -> None:
    config = configs.load(file_of(repository, name), GIVEN)
    assert config.method.name == name
    assert departures(config) == ((), ())
    assert (config.data.path, config.model.name) == ("rows.jsonl", "org/model")


@pytest.mark.parametrize("name", METHODS)
def test_published_values_are_published_and_say_where(repository: Path, name: str) -> None:
    path = file_of(repository, name)
    config, said = configs.load(path, GIVEN), claims(path)
    for key, (value, source) in PUBLISHED[name].items():
        assert value_at(config, key) == value, key
        assert source in said.get(key, ""), f"{key}: its line names no such source"
    assert set(said) == set(PUBLISHED[name]), "a claim that is not in the table of this test"


@pytest.mark.parametrize("name", METHODS)
def test_a_preset_names_its_paper_and_sets_every_key_it_claims(repository: Path, name: str) -> None:
    path = file_of(repository, name)
    text = path.read_text(encoding="utf-8")
    assert re.search(r"arXiv \d{4}\.\d{5}", text.partition("\n\n")[0])
    tree = tomllib.loads(text)
    for key in claims(path):
        node: Any = tree
        for step in key.split("."):
            node = node[step]


@pytest.mark.parametrize("name", [name for name, parts in METHODS.items() if "critic" in parts])
def test_a_preset_with_a_critic_says_whether_advantages_are_whitened(
    repository: Path, name: str
) -> None:
    """In a comment beside the key, and what verl does, whose GAE whitens over the batch."""
    lines = file_of(repository, name).read_text(encoding="utf-8").splitlines()
    (line,) = (line for line in lines if re.match(r'normalise = "', line))
    chosen = configs.load(file_of(repository, name), GIVEN).method.advantage.normalise
    said = line.partition("#")[2]
    assert line.startswith(f'normalise = "{chosen}"')
    assert "verl's GAE" in said
    assert ("not whitened" in said) == (chosen == "none")


@pytest.mark.parametrize("name", METHODS)
def test_an_environment_takes_the_settings_of_a_preset(repository: Path, name: str) -> None:
    """With what the command for a small run gives it."""
    path = file_of(repository, name)
    typed = [line for line in path.read_text().splitlines() if line.startswith("#   assay train ")]
    chosen = configs.load(path, shlex.split(typed[-1][1:])[3:]).method.episodes
    if chosen.on:
        kind = environment_of(chosen.environment)
        assert settings_of(kind, chosen.settings) != kind.Settings() or not chosen.settings


@pytest.mark.parametrize("name", METHODS)
def test_the_commands_in_a_preset_can_be_typed(repository: Path, name: str) -> None:
    lines = file_of(repository, name).read_text(encoding="utf-8").splitlines()
    commands = [
        shlex.split(line[1:])
        for line in lines
        if line.startswith(("#   assay train ", "#   assay ladder "))
    ]
    assert len(commands) >= 3
    for _, command, *words in commands:
        arguments = [word for word in words if word != "--explain"]
        path = repository / arguments[0]
        if command == "ladder":
            assert len(plan.load(path, arguments[1:]).rungs) > 1
        else:
            config = configs.load(path, arguments[1:])
            assert config.method.name == name
    small = configs.load(file_of(repository, name), commands[-1][3:])
    assert small.samples_per_step <= 128
    assert small.rollout.max_new_tokens <= 512


def test_data_must_be_given_and_the_message_says_how(repository: Path) -> None:
    with pytest.raises(ConfigError, match=r"data\.path is missing.*or pass data\.path="):
        configs.load(file_of(repository, "dapo"))


@pytest.mark.parametrize("name", METHODS)
def test_every_part_of_a_preset_can_be_switched_off_on_the_command_line(
    repository: Path, name: str
) -> None:
    path = file_of(repository, name)
    config = configs.load(path, GIVEN)
    for part in parts_on(config):
        alone = config.rollout.group_size == 1 or config.method.turns.on
        if part.off is None or (part.name == "critic" and alone):
            continue
        off = configs.load(path, [*GIVEN, f"ablate={part.name}"])
        assert part.name not in {other.name for other in parts_on(off)}
        assert departures(off) != ((), ())


# Table 1 of arXiv 2503.14476, from naive GRPO up.
DAPO_LADDER = [
    ("naive-grpo", set()),
    ("overlong-filter", {"overlong-filter"}),
    ("clip-higher", {"overlong-filter", "clip-higher"}),
    ("soft-overlong", {"soft-overlong", "clip-higher"}),
    ("token-level-loss", {"soft-overlong", "clip-higher", "token-level-loss"}),
    (
        "dynamic-sampling",
        {"soft-overlong", "clip-higher", "token-level-loss", "dynamic-sampling"},
    ),
]


def test_the_ladder_of_dapo_adds_one_technique_at_a_time(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/dapo.toml", GIVEN)
    common = {"group-normalisation", "std-scaling", "dual-clip"}
    seen = [
        (rung.name, {part.name for part in parts_on(rung.configs[0])} - common)
        for rung in ladder.rungs
    ]
    assert seen == DAPO_LADDER
    assert ladder.against == "previous"


# Table 1 of arXiv 2504.05118, in its order.
VAPO_ABLATIONS = (
    "value-pretraining",
    "decoupled-gae",
    "length-adaptive-gae",
    "clip-higher",
    "token-level-loss",
    "positive-lm-loss",
    "group-sampling",
)


def test_the_ladder_of_vapo_takes_one_part_away_at_a_time(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/vapo.toml", GIVEN)
    assert [rung.ablate for rung in ladder.rungs] == [(), *((name,) for name in VAPO_ABLATIONS)]
    whole = METHODS["vapo"]
    for rung in ladder.rungs:
        assert {part.name for part in parts_on(rung.configs[0])} == whole - set(rung.ablate)
        assert rung.configs[0].samples_per_step == 8192
    assert ladder.against == "first"


# Section 5 of arXiv 2506.10406's ablations, and the changes with which it fails.
PAG_ABLATIONS = (
    {"role-normalisation"},
    {"turn-shaping"},
    {"role-normalisation", "turn-shaping"},
    {"turn-independence"},
    {"selective-revision"},
    {"turn-rewards", "turn-independence"},
    {"first-attempt-reward"},
)


def test_the_ladder_of_pag_takes_parts_away(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/pag.toml", GIVEN)
    assert [set(rung.ablate) for rung in ladder.rungs] == [set(), *PAG_ABLATIONS]
    earns = {"first-attempt-reward", "verifier-reward", "turn-shaping"}
    for rung in ladder.rungs:
        gone = set(rung.ablate) | (earns if "turn-rewards" in rung.ablate else set())
        assert {part.name for part in parts_on(rung.configs[0])} == METHODS["pag"] - gone


def test_the_ladder_of_pairwise_ppo_keeps_its_yardstick(repository: Path) -> None:
    """The anchors of the data on every rung: held-out accuracy is the rate of beating them."""
    ladder = plan.load(repository / "configs/ladders/pairwise.toml", GIVEN)
    whole = METHODS["pairwise_ppo"]
    *rungs, group = ladder.rungs
    added = {"centred-win", "log-odds-win"}
    assert [rung.name for rung in rungs] == [
        "pairwise-ppo",
        *sorted(added),
        *(f"without-{rung.ablate[0]}" for rung in rungs if rung.ablate),
    ]
    for rung in rungs:
        parts = {part.name for part in parts_on(rung.configs[0])}
        assert parts == (whole | ({rung.name} & added)) - set(rung.ablate)
    assert {part.name for part in parts_on(group.configs[0])} == METHODS["pairwise_group"]
    assert {rung.configs[0].samples_per_step for rung in ladder.rungs} == {512}
    assert {rung.configs[0].method.pairwise.anchors for rung in ladder.rungs} == {"data"}


def test_the_ladder_of_t_ppo_has_windows_and_takes_parts_away(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/t_ppo.toml", GIVEN)
    whole = METHODS["t_ppo"]
    windows = [rung.configs[0].method.truncation.window for rung in ladder.rungs]
    assert windows == [8192, 4096, 16384, 0, *[8192] * 4]
    assert {name for rung in ladder.rungs for name in rung.ablate} == (
        whole - {"critic", "value-pretraining"}
    )
    for rung in ladder.rungs:
        assert {part.name for part in parts_on(rung.configs[0])} == whole - set(rung.ablate)
        assert rung.configs[0].samples_per_step == 8192


def test_the_command_in_a_ladder_can_be_typed(repository: Path) -> None:
    for path in sorted((repository / "configs/ladders").glob("*.toml")):
        head = path.read_text(encoding="utf-8").partition("\n\n")[0]
        command = head.replace("\\\n#", "").partition("#   assay ladder ")[2].splitlines()[0]
        file, *words = shlex.split(command)
        assert repository / file == path
        assert len(plan.load(path, words).rungs) > 1


def test_the_ladder_of_code_prm_is_the_four_way_ablation(repository: Path) -> None:
    ladder = plan.load(repository / "configs/ladders/code_prm.toml", GIVEN)
    of_dense = {part.name for part in DENSE.parts}
    gone = [of_dense | {"value-init"}, of_dense, {"value-init"}, set()]
    for rung, off in zip(ladder.rungs, gone, strict=True):
        assert {part.name for part in parts_on(rung.configs[0])} == METHODS["code_prm"] - off


def test_the_methods_page_has_the_table_of_parts(repository: Path) -> None:
    """The page says by hand of which parts each method is made; a preset that differs fails."""
    text = (repository / "docs" / "train" / "methods.md").read_text(encoding="utf-8")
    (found,) = re.findall(r"^\| part \| (`grpo`.*) \|$", text, re.MULTILINE)
    names = [name.strip("`") for name in found.split(" | ")]
    assert set(names) == set(METHODS)
    rows = [
        f"| {part.name} | "
        + " | ".join("x" if part.name in METHODS[name] else "" for name in names)
        + " |"
        for part in parts()
        if any(part.name in METHODS[name] for name in names)
    ]
    header = f"| part | {' | '.join(f'`{name}`' for name in names)} |"
    assert "\n".join([header, "|---|" + ":-:|" * len(names), *rows]) in text
    for part in parts():
        assert f"`{part.name}`" in text or f"| {part.name} |" in text
        assert part.what in text
        assert part.reference in text
