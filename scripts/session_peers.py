"""Points other projects' tests of sandboxes, executors and kernels at sessions.

    python scripts/session_peers.py fetch FOLDER [SUITE...]      checkouts and environments, once
    python -m assay.sandbox --port 50052 --python-packages numpy,pytest,pillow &
    python scripts/session_peers.py run --target 127.0.0.1:50052 FOLDER [SUITE...]
    python scripts/session_peers.py replay --target 127.0.0.1:50052 FOLDER FILE...
    python scripts/session_peers.py copies --target 127.0.0.1:50052 FOLDER FILE...

Nothing of a peer is copied or changed: `fetch` clones the repositories at the commits below (from
`--mirror` where github.com is not to be had) and installs the packages; a module of
scripts/session_shims stands in each peer's interpreter in the place of its own sandbox. Every test
that fails is looked up in scripts/session_shims/differences.toml, which says why it does and whose
decision that is. `run` prints a table and returns 1 where a test fails that is not listed there,
or one that is listed passes. `replay` compares cells with a Jupyter kernel, `copies` with the same
cells in a session that is checkpointed, rolled back and forked: see the modules of these names.
"""

from __future__ import annotations

import argparse
import collections
import fnmatch
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

SCRIPTS = Path(__file__).resolve().parent
SHIMS = SCRIPTS / "session_shims"
OURS = (
    "grpcio>=1.85,<2", "grpcio-health-checking>=1.85,<2", "grpcio-reflection>=1.85,<2",
    "googleapis-common-protos>=1.70,<2", "prometheus_client>=0.26,<1", "protobuf>=7.35,<8",
)  # fmt: skip
PYTEST = ("pytest", "pytest-asyncio", "pytest-timeout")
REPOSITORIES = {
    "SWE-ReX": ("SWE-agent/SWE-ReX", "5c995c365dfb1fd5bc56fda688be5d8538f9931f"),
    "OpenEnv": ("meta-pytorch/OpenEnv", "685de411e5f77286b0fd94798d42c4467cf8a1bc"),
    "smolagents": ("huggingface/smolagents", "e3a5b8994b301983b91c0325546e9dc82eab8cf0"),
    "ipykernel": ("ipython/ipykernel", "dfb3467ba8939b7183d0fd6367ca7d538858b871"),
    "autogen": ("microsoft/autogen", "027ecf0a379bcc1d09956d46d12d44a3ad9cee14"),
}
_REPLAYS = ("replay", "copies")
_AUTOGEN = "python/packages/autogen-ext/tests/code_executors"
_KERNEL = """\
{"argv": ["PYTHON", "-m", "session_shims.kernel", "-f", "{connection_file}"],
 "display_name": "A session", "language": "python"}
"""


@dataclass(frozen=True)
class Suite:
    """A peer's tests.

    Attributes:
        packages: what its interpreter needs.
        tests: files; a shim's where the peer's are collected through it.
        plugin: the shim, where pytest loads it before the peer's own files.
        checkout: the repository in REPOSITORIES.
        parts: folders of it that are needed.
        path: its folders in the interpreter's path.
        environment: variables.
        kernel: its tests start a Jupyter kernel by the name python3.
    """

    packages: tuple[str, ...]
    tests: tuple[str, ...]
    plugin: str = ""
    checkout: str = ""
    parts: tuple[str, ...] = (".",)
    path: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    kernel: bool = False
    prepend: bool = False


SUITES = {
    "inspect_ai": Suite(("inspect_ai==0.3.285",), ("inspect_ai_check.py",)),
    "langchain": Suite(("langchain-tests==1.1.9", "deepagents==0.6.12"), ("langchain_check.py",)),
    "swe-rex": Suite(
        ("swe-rex==1.4.0", "aiohttp", "fastapi", "requests", "uvicorn"),
        ("tests/test_execution.py",),
        "swerex_plugin",
        "SWE-ReX",
    ),
    "openenv": Suite(
        (
            "smolagents==1.26.0",
            "fastapi",
            "fastmcp",
            "gradio_client",
            "openai",
            "tomli-w",
            "typer",
            "uvicorn",
        ),
        (
            "tests/envs/test_python_codeact_reset.py",
            "tests/envs/test_python_codeact_rewards.py",
            "tests/envs/test_coding_env_integration.py",
        ),
        "openenv_plugin",
        "OpenEnv",
        ("src", "envs/coding_env", "tests"),
        ("", "src", "envs"),
        (("SKIP_DOCKER_TESTS", "0"),),
    ),
    "smolagents": Suite(
        ("smolagents==1.26.0", "docker", "pillow", "requests"),
        ("smolagents_check.py",),
        checkout="smolagents",
        path=("",),
    ),
    "jupyter_kernel_test": Suite(
        ("jupyter_kernel_test==0.7.0", "ipykernel==7.4.0"), ("kernel_check.py",), kernel=True
    ),
    "ipykernel": Suite(
        ("ipykernel==7.4.0",),
        ("tests/test_message_spec.py", "tests/test_kernel.py"),
        checkout="ipykernel",
        kernel=True,
        prepend=True,
    ),
    "autogen": Suite(
        ("autogen-ext==0.7.5", "asyncio_atexit", "aiofiles", "ipykernel", "nbclient", "pillow"),
        (f"{_AUTOGEN}/test_jupyter_code_executor.py",),
        checkout="autogen",
        parts=(_AUTOGEN,),
        kernel=True,
    ),
}


def main() -> int:
    """Runs the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("fetch", "run", "replay", "copies"):
        command = commands.add_parser(name)
        command.add_argument("folder", type=Path)
        if name == "fetch":
            command.add_argument("--mirror", default="https://github.com/{0}.git")
        else:
            command.add_argument("--target", default="127.0.0.1:50052")
        command.add_argument("what", nargs="+" if name in _REPLAYS else "*")
    given, passed_on = parser.parse_known_args()
    if passed_on and given.command not in _REPLAYS:
        parser.error(f"unknown: {' '.join(passed_on)}")
    folder: Path = given.folder.resolve()
    if given.command == "fetch":
        return _fetch(folder, given.mirror, given.what or list(SUITES))
    if given.command in _REPLAYS:
        return _replay(folder, given.command, given.target, given.what + passed_on)
    return _run(folder, given.target, given.what or list(SUITES))


def _fetch(folder: Path, mirror: str, names: list[str]) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        suite = SUITES[name]
        place = folder / "checkouts" / suite.checkout
        if suite.checkout and not place.exists():
            repository, commit = REPOSITORIES[suite.checkout]
            source = mirror.format(repository, repository.replace("/", "+"))
            _do(["git", "clone", "-q", "-n", source, place])
            _do(["git", "-C", place, "checkout", "-q", commit, "--", *suite.parts])
        python = _python(folder, name)
        if not python.exists():
            _do([sys.executable, "-m", "venv", folder / "venvs" / name])
        for packages in ((*PYTEST, *suite.packages), OURS):  # ours last: pins may exclude them
            _do([python, "-m", "pip", "install", "-q", *packages])
    return 0


def _do(command: list[str | Path]) -> None:
    subprocess.run(command, check=True)


def _here() -> list[Path]:
    return [SCRIPTS, *(SCRIPTS.parent / part for part in ("protos", "kit", "clients"))]


def _python(folder: Path, name: str) -> Path:
    return folder / "venvs" / name / "bin" / "python"


def _run(folder: Path, target: str, names: list[str]) -> int:
    listed = tomllib.loads((SHIMS / "differences.toml").read_text())
    wrong = 0
    print(f"{'suite':20} {'version':44} passed failed skipped")
    for name in names:
        outcomes = list(_outcomes(folder, name, target))
        counts = collections.Counter(kind for _, kind in outcomes)
        version = SUITES[name].packages[0]
        if SUITES[name].checkout:
            version += f", {REPOSITORIES[SUITES[name].checkout][1][:8]}"
        figures = f"{counts['passed']:6} {counts['failed']:6} {counts['skipped']:7}"
        print(f"{name:20} {version:44} {figures}", flush=True)
        for text, is_wrong in _explained(outcomes, listed.get(name, {})):
            print(f"    {text}")
            wrong += is_wrong
        if not outcomes:
            print("    nothing ran")
            wrong += 1
    return int(wrong > 0)


def _explained(
    outcomes: Iterable[tuple[str, str]], listed: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, bool]]:
    """A line for each listed reason and each test that fails for none, and whether it is wrong."""
    failed = {test for test, kind in outcomes if kind == "failed"}
    for reason in listed.values():
        patterns = reason["tests"].split()
        either = [*patterns, *reason.get("sometimes", "").split()]
        hit = {test for test in failed if any(fnmatch.fnmatch(test, p) for p in either)}
        stale = [p for p in patterns if not any(fnmatch.fnmatch(test, p) for test in failed)]
        failed -= hit
        if hit:
            yield f"{len(hit):3} {reason['kind']}: {reason['why']}", False
        for pattern in stale:
            yield f"    STALE: {pattern} is listed and does not fail", True
    for test in sorted(failed):
        yield f"    FAILED: {test}", True


def _outcomes(folder: Path, name: str, target: str) -> Iterator[tuple[str, str]]:
    suite, python = SUITES[name], _python(folder, name)
    checkout = folder / "checkouts" / suite.checkout
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch, "report.xml")
        kernels = Path(scratch, "kernels", "python3")
        kernels.mkdir(parents=True)
        kernels.joinpath("kernel.json").write_text(_KERNEL.replace("PYTHON", str(python)))
        path = [*_here(), *(checkout / part for part in suite.path)]
        environment = os.environ | dict(suite.environment)
        environment |= {
            "ASSAY_PEERS_TARGET": target,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if suite.kernel:
            environment["JUPYTER_PATH"] = scratch
        files = [
            SHIMS / test if (SHIMS / test).exists() else checkout / test for test in suite.tests
        ]
        mode = "prepend" if suite.prepend else "importlib"
        command: list[str | Path] = [
            python, "-m", "pytest", "-c", os.devnull, "--rootdir", scratch, "--timeout", "60",
            "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", f"--import-mode={mode}", "-q",
            "--tb=native", f"--junitxml={report}", *files,
        ]  # fmt: skip
        if suite.plugin:
            command += ["-p", f"session_shims.{suite.plugin}"]
        subprocess.run(command, env=environment, cwd=scratch, check=False, stdout=sys.stderr)
        if report.exists():
            yield from _read(report)


def _read(report: Path) -> Iterator[tuple[str, str]]:
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest's own
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            kind = "failed"
        else:
            kind = "skipped" if "skipped" in kinds else "passed"
        yield case.attrib["name"], kind


def _replay(folder: Path, module: str, target: str, files: list[str]) -> int:
    path = os.pathsep.join(map(str, _here()))
    environment = os.environ | {"ASSAY_PEERS_TARGET": target, "PYTHONPATH": path}
    command: list[str | Path] = [
        _python(folder, "ipykernel"),
        "-m",
        f"session_shims.{module}",
        *files,
    ]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
