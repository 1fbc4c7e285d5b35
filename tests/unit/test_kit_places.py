"""Places for workers that plug in: found by name, loaded when asked for, missed in one line."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from types import SimpleNamespace
from typing import Any

import pytest

from assay.clients.services import how_to_install
from assay.kit.errors import ConfigError
from assay.kit.pool import places


class Elsewhere:
    """A place that takes one address."""

    joined: list[str] = []  # noqa: RUF012 - one for the test

    def check(self, address: str) -> None:
        if address != "there":
            raise ConfigError("not there")

    async def join(self, address: str) -> None:
        self.joined.append(address)

    def workers(self, placement: places.Placement) -> Any:
        return placement


ELSEWHERE = Elsewhere()


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "elsewhere": f"{__name__}:ELSEWHERE",
        "gone": "no.such.module:PLACE",
        "empty": f"{__name__}:NOTHING",
    }
    found = [EntryPoint(name, value, places.GROUP) for name, value in points.items()]
    monkeypatch.setattr(places, "entry_points", lambda group: found)


async def test_a_place_is_found_by_its_name_and_asked(plugged: None) -> None:
    assert places.installed_places() == ["local", "elsewhere", "empty", "gone"]
    places.check_pool("elsewhere", "there")
    with pytest.raises(ConfigError, match="not there"):
        places.check_pool("elsewhere", "here")
    await places.join("elsewhere", "there")
    await places.join("local", "auto")
    assert ELSEWHERE.joined == ["there"]
    wanted: Any = SimpleNamespace()
    assert places.find_place("elsewhere").workers(wanted) is wanted


@pytest.mark.parametrize("name", ["gone", "empty"])
def test_a_plug_in_that_cannot_be_loaded_is_named(plugged: None, name: str) -> None:
    with pytest.raises(ConfigError, match=f"--pool {name}: .* cannot be loaded: "):
        places.find_place(name)


def test_a_missing_place_is_answered_by_those_here_and_by_what_to_type(
    plugged: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert how_to_install(places.RAY_PLUG_IN) == places.HOW_TO_INSTALL_RAY
    here = "is not installed here, where there is local, elsewhere, empty, gone"
    with pytest.raises(ConfigError, match=re.escape(places.HOW_TO_INSTALL_RAY)) as told:
        places.check_pool("ray", "auto")
    assert str(told.value).startswith(f"--pool 'ray' {here}; ray comes with assay-rl-ray-pool; ")
    point = EntryPoint("ray", "assay.ray_pool.place:PLACE", places.GROUP)
    monkeypatch.setattr(places, "entry_points", lambda group: [point])
    with pytest.raises(ConfigError, match="local, ray; did you mean 'ray'"):
        places.check_pool("rays", "auto")
