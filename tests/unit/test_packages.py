"""The wheels: what is in them, what they ask for, and that none holds a file of another."""

from __future__ import annotations

import configparser
import re
import subprocess
from collections import Counter
from email.parser import HeaderParser
from pathlib import Path

import pytest

from wheels_support import DISTRIBUTIONS, Wheel, build_wheels, closure, wheel_by_sdist

SMALL = {
    # Ours, gRPC and protobuf.
    "assay-rl-api", "assay-rl-kit", "assay-rl-clients",
    "grpcio", "grpcio-health-checking", "grpcio-reflection",
    "googleapis-common-protos", "protobuf", "typing-extensions",
    # The services' metrics: pure Python, without dependencies.
    "prometheus-client",
}  # fmt: skip
# What the extra of the command adds: the command and its tables.
COMMAND = {"click", "rich", "markdown-it-py", "mdurl", "pygments"}
# What brings hundreds of megabytes, by who may ask for it.
HEAVY = {"torch", "transformers", "trl", "datasets", "accelerate", "peft"}
# Plug-ins that import the service that they add to.
PLUG_INS = {
    "assay-rl-docker-backend": "assay-rl-sandbox",
    "assay-rl-verifiers-extra": "assay-rl-reward-server",
}


@pytest.fixture(scope="module")
def wheels(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wheel]:
    return build_wheels(repository, tmp_path_factory.mktemp("wheels"))


def test_a_wheel_holds_its_folder_and_nothing_else(
    wheels: dict[str, Wheel], repository: Path
) -> None:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *DISTRIBUTIONS,
         "configs"],
        cwd=repository, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    tracked = [line for line in listing.stdout.splitlines() if (repository / line).is_file()]
    for wheel in wheels.values():
        prefix = f"{wheel.folder}/"
        wanted = {
            line.removeprefix(prefix) for line in tracked if line.startswith(f"{prefix}assay/")
        }
        if wheel.folder == "trainer":  # a link, which the wheel carries as files
            presets = (line for line in tracked if line.startswith("configs/"))
            wanted |= {f"assay/trainer/settings/{line}" for line in presets}
        assert {name for name in wheel.names() if ".dist-info/" not in name} == wanted
        assert wanted, wheel.folder


def test_no_file_is_in_two_wheels_and_none_hides_the_namespace(wheels: dict[str, Wheel]) -> None:
    count = Counter(name for wheel in wheels.values() for name in wheel.names())
    assert {name for name, times in count.items() if times > 1} == set()
    assert "assay/__init__.py" not in count
    packages = Counter(
        package for wheel in wheels.values() for package in {*map(_package, wheel.names())} - {""}
    )
    assert set(packages) == {
        "api", "kit", "clients", "cli", "environments", "viewer", "audit", "lab", "math",
        "reward_server", "sandbox", "genrm", "trainer", "compat", "docker_backend", "ray_pool",
        "verifiers_extra",
    }  # fmt: skip
    assert set(packages.values()) == {1}


def test_every_package_is_typed(wheels: dict[str, Wheel]) -> None:
    for wheel in wheels.values():
        names = wheel.names()
        for package in {*map(_package, names)} - {""}:
            assert f"assay/{package}/py.typed" in names


def test_every_wheel_carries_the_licence(
    wheels: dict[str, Wheel], repository: Path, tmp_path: Path
) -> None:
    """Also one that is built from an sdist, which has no root of the repository above it."""
    text = (repository / "LICENSE").read_text()
    for wheel in wheels.values():
        by_sdist = wheel_by_sdist(repository / wheel.folder, tmp_path)
        assert by_sdist.names() == wheel.names()
        for one in (wheel, by_sdist):
            assert one.read("licenses/LICENSE") == text
            headers = HeaderParser().parsestr(one.read("METADATA"))
            assert headers["License-Expression"] == "Apache-2.0"
            assert headers.get_all("License-File") == ["LICENSE"]


def test_the_contract_ships_with_its_types(wheels: dict[str, Wheel]) -> None:
    names = set(wheels["assay-rl-api"].names())
    protos = [name for name in names if name.endswith(".proto")]
    assert len(protos) == 6
    for proto in protos:
        stem = proto.removesuffix(".proto")
        assert {f"{stem}_pb2.py", f"{stem}_pb2.pyi", f"{stem}_pb2_grpc.pyi"} <= names


def test_the_client_stays_small(wheels: dict[str, Wheel]) -> None:
    """What `pip install ./protos ./kit ./clients` brings: no command, numpy, torch, web server."""
    assert closure(wheels, ["assay-rl-clients"]) == SMALL
    assert closure(wheels, ["assay-rl-clients[cli]"]) == SMALL | COMMAND


def test_the_grader_of_mathematics_brings_sympy_and_nothing_else(wheels: dict[str, Wheel]) -> None:
    assert closure(wheels, ["assay-rl-math"]) == {"assay-rl-math", "sympy", "mpmath"}


def test_what_is_heavy_is_asked_for_where_it_is_used(wheels: dict[str, Wheel]) -> None:
    brings = {name: closure(wheels, [name]) & HEAVY for name in wheels}
    assert brings == {
        "assay-rl-api": set(), "assay-rl-kit": set(), "assay-rl-clients": set(),
        "assay-rl-math": set(),
        "assay-rl-sandbox": set(), "assay-rl-compat": set(), "assay-rl-docker-backend": set(),
        "assay-rl-ray-pool": set(),
        "assay-rl-reward-server": set(), "assay-rl-genrm": {"torch", "transformers"},
        "assay-rl-trainer": HEAVY, "assay-rl-verifiers-extra": set(),
    }  # fmt: skip


def test_a_service_asks_for_no_other_service(wheels: dict[str, Wheel]) -> None:
    for name in wheels:
        ours = closure(wheels, [name]) & set(wheels)
        allowed = {name, "assay-rl-api", "assay-rl-kit", "assay-rl-clients", "assay-rl-math"}
        if name in PLUG_INS:
            allowed.add(PLUG_INS[name])
        assert ours <= allowed


def test_libraries_that_few_need_come_with_the_plug_in(wheels: dict[str, Wheel]) -> None:
    few = {"emoji", "langdetect", "pint", "syllapy", "rdkit", "reasoning-gym"}
    assert closure(wheels, ["assay-rl-reward-server"]) & few == set()
    assert "docker" not in closure(wheels, ["assay-rl-sandbox"])
    assert "docker" in closure(wheels, ["assay-rl-docker-backend"])
    asked = wheels["assay-rl-verifiers-extra"].requires(["chemistry", "puzzles"])
    assert {one.name for one in asked} >= few


def test_entry_points_name_what_the_wheel_holds(wheels: dict[str, Wheel]) -> None:
    seen = set()
    for wheel in wheels.values():
        names = wheel.names()
        if not any(name.endswith("entry_points.txt") for name in names):
            assert wheel.folder in {"protos", "kit", "math"}
            continue
        parser = configparser.ConfigParser(delimiters=("=",))
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        parser.read_string(wheel.read("entry_points.txt"))
        for section in parser.sections():
            for name, target in parser.items(section):
                module = target.partition(":")[0].replace(".", "/")
                assert {f"{module}.py", f"{module}/__init__.py"} & set(names), target
                assert (section, name) not in seen
                seen.add((section, name))
    assert ("console_scripts", "assay") in seen


def _package(name: str) -> str:
    found = re.match(r"assay/(\w+)/", name)
    return found[1] if found else ""
