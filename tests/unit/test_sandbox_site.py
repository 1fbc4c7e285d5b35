"""A machine whose walls are too low is refused, in words that say what to do."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from assay.kit.errors import ConfigError, StartupError
from assay.sandbox import backends, doctor, site
from assay.sandbox.backend import Boxes, IsolationBackend, SlotSettings, Walls
from assay.sandbox.config import FLOORS, SandboxConfig
from assay.sandbox.domain import RunLimits
from assay.sandbox.jail import LEVELS, Isolation, JailBoxes, Level
from assay.sandbox.jail import backend as jail_backend
from assay.sandbox.jail.backend import JAIL
from assay.sandbox.languages import MissingLanguage, Toolchains
from assay.sandbox.settings import SupervisorSettings

MISSING = (("namespaces", "unshare is forbidden; allow user namespaces"),)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with one language and no need to make anything in advance."""
    nothing = Toolchains({}, {"rust": MissingLanguage("rust", "install rustc.", "rustc")})
    monkeypatch.setattr(site, "discover", lambda names: nothing)
    monkeypatch.setattr(site, "warm_up", lambda toolchains, folder: toolchains)
    return monkeypatch


class _Plugged:
    on_this_machine = False

    def check(self, config: SandboxConfig) -> Walls:
        return Walls("glass", ("pane",))

    def open(self, settings: SlotSettings) -> Boxes:
        raise NotImplementedError


PLUGGED: IsolationBackend = _Plugged()


def walls(machine: pytest.MonkeyPatch, level: Level | None) -> None:
    machine.setattr(jail_backend, "detect", lambda: Isolation(level, ("seccomp",), MISSING))


def test_the_floors_are_the_jails_levels() -> None:
    assert FLOORS == LEVELS


@pytest.mark.parametrize("level", ["uid", "confined"])
def test_below_the_floor_it_does_not_serve(
    machine: pytest.MonkeyPatch, tmp_path: Path, level: Level
) -> None:
    walls(machine, level)
    with pytest.raises(StartupError) as caught:
        site.survey(SandboxConfig(cache_dir=tmp_path))
    text = str(caught.value)
    assert "unshare is forbidden; allow user namespaces" in text
    assert f"--isolation-floor {level}" in text


@pytest.mark.parametrize("level", LEVELS)
def test_the_operator_may_lower_the_floor_by_name(
    machine: pytest.MonkeyPatch, tmp_path: Path, level: Level, caplog: pytest.LogCaptureFixture
) -> None:
    walls(machine, level)
    found = site.survey(SandboxConfig(cache_dir=tmp_path, isolation_floor=level))
    assert (found.level, found.layers) == (level, ("seccomp",))
    # Never in silence.
    assert "unshare is forbidden" in caplog.text
    assert "rust is not served: install rustc." in caplog.text


def test_no_walls_at_all_are_never_enough(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    walls(machine, None)
    with pytest.raises(StartupError, match="no isolation works"):
        site.survey(SandboxConfig(cache_dir=tmp_path, isolation_floor="confined"))


def test_a_language_that_was_named_must_be_there(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    walls(machine, "namespaces")
    with pytest.raises(StartupError, match=r"rust: install rustc\."):
        site.survey(SandboxConfig(cache_dir=tmp_path, languages=("rust",)))


def test_a_cache_that_cannot_be_written_is_said_or_replaced(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    walls(machine, "namespaces")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ConfigError, match="--cache-dir"):
        site.survey(SandboxConfig(cache_dir=blocked / "cache"))
    machine.setenv("XDG_CACHE_HOME", str(blocked))
    machine.setenv("TMPDIR", str(tmp_path))
    machine.setattr("tempfile.tempdir", None)
    assert site.survey(SandboxConfig()).cache_dir.parent == tmp_path


def test_what_a_supervisor_is_told_survives_the_way() -> None:
    limits = RunLimits(cpu_s=1.5, processes=7)
    settings = SupervisorSettings(
        3, "jail", "uid", "", Toolchains({}, {}).to_json(), "/c", 5, limits
    )
    assert SupervisorSettings.from_json(settings.to_json()) == settings


@pytest.mark.parametrize(
    ("fields", "flag"),
    [
        ({"slots": -1}, "--slots"),
        ({"isolation_floor": "hope"}, "--isolation-floor"),
        ({"max_output_mb": 17}, "--max-output-mb"),
        ({"max_wall_s": float("inf")}, "--max-wall-s"),
        ({"max_processes": 0}, "--max-processes"),
    ],
)
def test_settings_out_of_range_name_their_flag(fields: dict[str, object], flag: str) -> None:
    with pytest.raises(ConfigError, match=flag):
        SandboxConfig(**fields)  # type: ignore[arg-type]


def test_the_jail_is_a_back_end() -> None:
    assert backends.find_backend(SandboxConfig().backend) is JAIL
    boxes = JAIL.open(SlotSettings(0, "confined", "", (), ()))
    assert isinstance(boxes, JailBoxes)
    boxes.close()


def test_back_ends_plug_in_and_none_takes_the_jails_place(
    machine: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A back end is found by its entry point, asked for the walls, and warms nothing here."""
    machine.setattr(site, "warm_up", None)
    entries = [EntryPoint(name, f"{__name__}:PLUGGED", backends.GROUP) for name in ("mine", "jail")]
    machine.setattr(backends, "entry_points", lambda group: entries)
    machine.setitem(sys.modules, __name__, sys.modules[__name__])
    found = site.survey(SandboxConfig(backend="mine", cache_dir=tmp_path))
    assert (found.level, found.layers) == ("glass", ("pane",))
    assert list(backends.installed_backends()) == ["jail", "mine"]
    assert backends.find_backend("jail") is JAIL


@pytest.mark.parametrize("name", ["docker", "runsc"])
def test_a_back_end_that_is_missing_says_what_brings_it(
    machine: pytest.MonkeyPatch, name: str
) -> None:
    machine.setattr(backends, "entry_points", lambda group: [])
    with pytest.raises(ConfigError) as caught:
        site.survey(SandboxConfig(backend=name))
    assert "there are jail" in str(caught.value)
    assert "pip install ./plugins/docker_backend" in str(caught.value)


def test_a_back_end_that_nobody_knows_or_that_is_broken(machine: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "assay.no_such_module:BACKEND", backends.GROUP)
    machine.setattr(backends, "entry_points", lambda group: [broken])
    with pytest.raises(ConfigError, match=r"'none' is not installed; there are jail, broken$"):
        site.survey(SandboxConfig(backend="none"))
    with pytest.raises(StartupError, match=r"'broken' .*cannot be loaded"):
        site.survey(SandboxConfig(backend="broken"))


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "detect", lambda: Isolation("confined", ("seccomp",), MISSING))
    lines = doctor.look()
    assert ("sandbox isolation", "confined", False) in lines
    assert any("unshare is forbidden" in found for _, found, _ in lines)
