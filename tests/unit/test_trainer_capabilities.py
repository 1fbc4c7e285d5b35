"""What goes together follows from what parts need and take; what is plugged in is told by name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from assay.kit.errors import ConfigError
from assay.trainer.settings import capabilities, registry
from assay.trainer.settings import config as configs
from assay.trainer.settings.capabilities import CAPABILITIES, clash
from assay.trainer.settings.config import Config, _Objective, _tables
from assay.trainer.settings.method import Backend, Estimator, Loss, Selection, TrainingMethod
from assay.trainer.settings.objective import LossConfig
from assay.trainer.settings.part import Part
from assay.trainer.settings.registry import declared, methods, parts
from assay.trainer.settings.tables import with_tables

ENGINES: dict[str, Backend] = dict(declared(Backend.group))
TAKERS = [(part.name, part.takes) for part in parts()]
TAKERS += [(name, engine.takes) for name, engine in ENGINES.items()]
PAIRS = [
    (needing, taking)
    for needing in parts()
    for taking in parts()
    if needing is not taking and needing.needs.keys() & taking.takes.keys()
]
SHARED = {"advantage", "critic", "loss"}


def test_every_capability_is_needed_by_one_and_taken_by_another() -> None:
    needed = {name for part in parts() for name in part.needs}
    taken = {name for _, takes in TAKERS for name in takes}
    assert needed == set(CAPABILITIES)
    assert taken == set(CAPABILITIES)
    assert {name for engine in ENGINES.values() for name in engine.takes}, "engines take some too"


def test_no_part_takes_what_it_needs_itself() -> None:
    for part in parts():
        assert not part.needs.keys() & part.takes.keys(), part.name


def test_reasons_fit_into_a_sentence() -> None:
    claims = [part.needs for part in parts()] + [takes for _, takes in TAKERS]
    for reason in [*CAPABILITIES.values(), *(text for claim in claims for text in claim.values())]:
        assert re.fullmatch(r"[a-zT][^\n]*[^.\s]", reason), reason


def switch(part: Part) -> str:
    """The first key that switches it off, from the settings as they are by default."""
    return next(iter(part.off(Config())), "") if part.off else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("needing", "taking"), PAIRS, ids=[f"{one.name}-{other.name}" for one, other in PAIRS]
)
def test_the_sentence_of_a_pair_has_both_sides_and_both_reasons(
    needing: Part, taking: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "parts_on", lambda _config: (needing, taking))
    said = clash(Config())
    first, second = (
        (needing, taking)
        if any(needing.needs[name] in said for name in needing.needs.keys() & taking.takes.keys())
        else (taking, needing)
    )
    (name,) = [
        name
        for name in first.needs.keys() & second.takes.keys()
        if f"needs {CAPABILITIES[name]}: {first.needs[name]}; with " in said
    ]
    assert said.startswith(first.name)
    assert f"{second.takes[name]}. Leave one of them out" in said
    for part in (first, second):
        key = switch(part)
        assert (f"{part.name} ({key})" if key else part.name) in said
    assert "\n" not in said


@pytest.mark.parametrize("name", [name for name, engine in ENGINES.items() if engine.takes])
def test_the_sentence_of_an_engine_names_the_setting(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = configs.build({}, [f"rollout.backend={name}"], origin="test")
    assert clash(config) == ""
    engine = ENGINES[name]
    for part in parts():
        monkeypatch.setattr(capabilities, "parts_on", lambda _config, on=part: (on,))
        hurt = [one for one in part.needs if one in engine.takes]
        said = clash(config)
        assert bool(said) == bool(hurt)
        if hurt:
            assert part.needs[hurt[0]] in said
            assert f'with rollout.backend = "{name}", {engine.takes[hurt[0]]}. Leave' in said


@pytest.mark.slow
def test_what_has_all_it_needs_goes_together(monkeypatch: pytest.MonkeyPatch) -> None:
    apart = {frozenset((one.name, other.name)) for one, other in PAIRS}
    for one in parts():
        for other in parts():
            monkeypatch.setattr(capabilities, "parts_on", lambda _config, on=(one, other): on)
            together = frozenset((one.name, other.name)) not in apart
            assert (clash(Config()) == "") == together, (one.name, other.name)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (
            ["method.truncation.window=64"],
            (
                "truncation (method.truncation.window) needs a critic: only a critic values what "
                "has not ended; with group-normalisation, the group is the baseline. Leave one of "
                "them out"
            ),
        ),
    ],
)
def test_settings_that_clash_are_refused_in_a_line(overrides: list[str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^test: {re.escape(sentence)}$"):
        configs.build({}, overrides, origin="test")


# What is plugged in.

Installed = Callable[..., None]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Puts a distribution of one module, with one entry point, before those that are installed."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(dist: str, group: str, point: str, code: str | None) -> None:
        module = dist.replace("-", "_")
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {dist}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{group}]\n{point} = {module}:DECLARED\n")
        if code is not None:
            (tmp_path / f"{module}.py").write_text(code)

    return install


def fresh(group: str) -> Any:
    """What is declared now, past what is remembered."""
    return declared.__wrapped__(group)


GROUPS = [kind.group for kind in (TrainingMethod, Loss, Estimator, Selection, Backend)]
_LOSS = """
from assay.trainer.settings.method import Loss
DECLARED = Loss("{name}", formula=lambda config: "A", function="nowhere:loss")
"""


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (None, "ModuleNotFoundError: No module named 'broken_plug'"),
        ("raise RuntimeError('no such GPU')", "RuntimeError: no such GPU"),
        ("OTHER = 1", "AttributeError: "),
    ],
)
def test_a_plug_in_that_cannot_be_loaded_names_its_package(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, group: str, code: str | None, cause: str
) -> None:
    monkeypatch.delitem(sys.modules, "broken_plug", raising=False)
    installed("broken-plug", group, "mine", code)
    with pytest.raises(ConfigError) as caught:
        fresh(group)
    said = str(caught.value)
    assert said.startswith(f"mine of broken-plug ({group}: broken_plug:DECLARED) cannot be loaded")
    assert cause in said
    assert said.endswith("mend or uninstall broken-plug")
    assert caught.value.__cause__ is not None


def test_a_plug_in_of_another_kind_names_its_package(installed: Installed) -> None:
    installed("odd-kind", Backend.group, "mine", _LOSS.format(name="mine"))
    with pytest.raises(ConfigError, match=r"mine of odd-kind .* is a Loss, and no declaration of"):
        fresh(Backend.group)
    installed("odd-value", Loss.group, "other", "DECLARED = 3")
    with pytest.raises(ConfigError, match=r"other of odd-value .* is a int, and no declaration of"):
        fresh(Loss.group)


def test_a_name_that_two_packages_declare_names_both(installed: Installed) -> None:
    installed("second-ppo", Loss.group, "another", _LOSS.format(name="ppo"))
    with pytest.raises(ConfigError, match=r"^ppo is declared twice \(assay\.losses\)") as caught:
        fresh(Loss.group)
    said = str(caught.value)
    assert "assay-rl-trainer" in said
    assert "second-ppo" in said


@pytest.mark.parametrize("table", ["filter", "loss", "name"])
def test_a_loss_cannot_take_the_table_of_a_method_or_a_key_of_every_run(table: str) -> None:
    """By hand, for the tables are made once, when the settings are imported."""
    tables = [*_tables(), (table, LossConfig)]
    with pytest.raises(ConfigError, match=rf"^\[method\.{table}\] would hold .*LossConfig: rename"):
        with_tables("Twice", _Objective, tables, section="method")


def test_a_plug_in_is_found_beside_ours(installed: Installed) -> None:
    installed("third-loss", Loss.group, "third", _LOSS.format(name="third"))
    assert set(fresh(Loss.group)) == {"third", *declared(Loss.group)}
    assert "third" not in declared(Loss.group), "what is installed is looked up once"


@pytest.mark.parametrize(
    ("key", "group"),
    [
        ("method.loss.objective", Loss.group),
        ("method.advantage.estimator", Estimator.group),
        ("data.selection.name", Selection.group),
        ("rollout.backend", Backend.group),
    ],
)
def test_an_unknown_name_answers_with_the_known_ones(key: str, group: str) -> None:
    known = sorted([*declared(group), *(["uniform"] if group == Selection.group else [])])
    for value in ("nothing-like-it", f"{known[0]}x"):
        with pytest.raises(ConfigError) as caught:
            configs.build({}, [f"{key}={value}"], origin="test")
        said = str(caught.value)
        assert f'{key} = "{value}" is not known' in said
        assert said.endswith(f"known here: {', '.join(known)}")
        assert "\n" not in said
    assert f"did you mean '{known[0]}'" in said


@pytest.mark.parametrize("key", ["hooks", "function", "make"])
def test_the_code_that_a_declaration_names_is_there(key: str) -> None:
    for group in GROUPS:
        for value in declared(group).values():
            reference = getattr(value, key, "")
            if reference:
                assert callable(registry.resolved(reference)), reference


# The core knows no method.


def test_the_core_imports_no_method_and_reads_no_table_of_one(repository: Path) -> None:
    own = [method.name for method in methods() if method.name not in SHARED]
    assert len(own) >= 14
    assert {method.name for method in methods()} > SHARED
    table = re.compile(rf"\bmethod\.({'|'.join(own)})\b")
    files = sorted((repository / "trainer" / "assay" / "trainer" / "core").rglob("*.py"))
    assert len(files) > 10
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert not table.search(text), f"{file.name}: {table.search(text)}"
        for node in ast.walk(ast.parse(text)):
            names = [one.name for one in getattr(node, "names", ()) if isinstance(one, ast.alias)]
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else names
            for module in modules:
                assert not module.startswith("assay.trainer.methods"), file.name
            if isinstance(node, ast.ImportFrom) and node.module == "assay.trainer":
                assert "methods" not in names, file.name
