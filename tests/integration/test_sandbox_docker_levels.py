"""Runs the jail in containers with each set of options of docs/operate/sandbox-deployment.md."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

docker = pytest.importorskip("docker", reason="the docker plug-in is not installed")

from assay.docker_backend import container as containers  # noqa: E402
from assay.docker_backend.container import DockerConfig  # noqa: E402
from assay.kit.errors import StartupError  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
IMAGE = "python:3.11-slim-bookworm"
PROFILE = ROOT / "sandbox" / "seccomp.json"
PROBE = """
import json, sys
sys.path.insert(0, "/opt/src")
from assay.sandbox.jail.detect import detect
found = detect()
print(json.dumps([found.level, found.layers, [name for name, _ in found.missing]]))
"""


def rows() -> list[tuple[str, str, str, str]]:
    """The table's rows: options, level, own user, private /proc."""
    text = (ROOT / "docs" / "operate" / "sandbox-deployment.md").read_text(encoding="utf-8")
    table = text.partition("<!-- levels")[2].partition("<!-- end of levels")[0]
    cells = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")][1:]
    return [tuple(cell.strip(" *`") for cell in row) for row in cells]  # type: ignore[misc]


def keywords(options: str) -> dict[str, Any]:
    """Options of `docker run` as arguments of the SDK."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--user", default="")
    parser.add_argument("--read-only", action="store_true")
    for name in ("--cap-drop", "--cap-add", "--security-opt", "--tmpfs"):
        parser.add_argument(name, action="append", default=[])
    given = parser.parse_args([] if options == "none" else shlex.split(options))
    security = [
        f"seccomp={PROFILE.read_text(encoding='utf-8')}" if option == "PROFILE" else option
        for option in given.security_opt
    ]
    more: dict[str, Any] = {}
    if "systempaths=unconfined" in security:  # the command's own word, not the daemon's
        security.remove("systempaths=unconfined")
        more = {"MaskedPaths": [], "ReadonlyPaths": []}
    return {
        "user": given.user,
        "host": {
            "cap_drop": given.cap_drop,
            "cap_add": given.cap_add,
            "security_opt": security,
            "read_only": given.read_only,
            "tmpfs": dict.fromkeys(given.tmpfs, ""),
        },
        "more": more,
    }


@pytest.fixture(scope="module")
def api() -> Any:
    try:
        client = containers.connect(DockerConfig())
        containers.check(client, DockerConfig(image=IMAGE))
    except StartupError as error:
        pytest.skip(str(error))
    yield client
    client.close()


def probe(api: Any, options: str) -> tuple[str | None, list[str], list[str]]:
    """What the jail finds in a container with these options."""
    given = keywords(options)
    host = api.create_host_config(
        network_mode="none",
        binds=[f"{ROOT / 'sandbox' / 'assay'}:/opt/src/assay:ro"],
        **given["host"],
    )
    host.update(given["more"])
    made = api.create_container(
        IMAGE, ["python3", "-B", "-c", PROBE], user=given["user"], host_config=host
    )
    try:
        api.start(made["Id"])
        api.wait(made["Id"], timeout=60)
        output = api.logs(made["Id"]).decode()
    finally:
        api.remove_container(made["Id"], v=True, force=True)
    assert output.startswith("["), output
    level, layers, missing = json.loads(output)
    return level, layers, missing


@pytest.mark.parametrize(("options", "level", "own_user", "private_proc"), rows())
def test_the_table_of_levels_says_what_is_so(
    api: Any, options: str, level: str, own_user: str, private_proc: str
) -> None:
    found, layers, missing = probe(api, options)
    assert (found or "none: the service refuses to start") == level
    answers = {True: "yes", False: "no"}
    assert answers["own-user" in layers] == own_user
    assert answers["private-proc" in layers] == private_proc
    if found == "namespaces":
        walls = ("user", "pid", "mount", "network", "ipc", "uts")
        assert {f"{wall}-namespace" for wall in walls} <= set(layers)
    else:
        assert "namespaces" in missing
    if found:
        assert {"seccomp", "no-new-privileges"} <= set(layers)


def test_the_table_has_the_row_that_compose_uses() -> None:
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    service = compose.partition("\n  sandbox:\n")[2]
    user = re.search(r'user: "([0-9:]+)"', service)
    assert user is not None
    options = {f"user {user[1]}", "read-only"}
    for key in ("cap_drop", "security_opt", "tmpfs"):
        name = key.replace("_", "-")
        options |= {f"{name} {value}" for value in listed(service, key)}
    options.remove("security-opt seccomp=sandbox/seccomp.json")
    options.add("security-opt PROFILE")
    assert "read_only: true" in service
    assert "privileged: " not in service
    levels = [row[1] for row in rows() if set(f" {row[0]}".split(" --")[1:]) == options]
    assert levels == ["namespaces"]


def listed(service: str, key: str) -> list[str]:
    """A list of strings of a Compose service."""
    block = re.search(rf"\n    {key}:\n((?:      - .*\n)+)", service)
    assert block is not None, key
    return [line.strip("- \n") for line in block[1].splitlines()]
