"""Points the tests of SandboxFusion and of verl at a running sandbox, unchanged.

    python -m assay.sandbox --http-port 8081 &
    python scripts/sandbox_conformance.py http://127.0.0.1:8081 \
        --sandbox-fusion CHECKOUT --verl CHECKOUT --python PYTHON [-- pytest's own arguments]

CHECKOUT is a clone of github.com/bytedance/SandboxFusion, or of github.com/volcengine/verl. PYTHON
is an interpreter with pytest, pytest-asyncio, httpx, requests, and what SandboxFusion's own modules
import (its pyproject; see bench/sandbox_peer.py). Nothing of either is copied or changed:

* SandboxFusion's tests talk to `TestClient(app)`; a plugin puts an HTTP client in its place, so
  that every request goes over the wire to the server given.
* verl's talk to the URL in SANDBOX_FUSION_URL; a package of the same name stands before it whose
  `__init__` imports nothing, so that neither Ray nor torch is needed.

Exits with pytest's code. What differs, and why, is in docs/use/sandbox-http.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUNNERS = (
    "bash", "cpp", "go", "go_test", "java", "jest", "junit", "jupyter", "nodejs", "pytest",
    "python", "rust", "typescript",
    "csharp", "d_ut", "kotlin_script", "lua", "perl", "php", "r", "racket", "ruby", "scala",
    "verilog",
)  # fmt: skip
DATASETS = ("provided_data", "humaneval_python", "utils")
VERL = "tests/utils/reward_score/reward_score/test_sandbox_fusion_on_cpu.py"
_PLUGIN = """\
import os

import fastapi.testclient
import httpx


def _client(app):
    return httpx.Client(base_url=os.environ["ASSAY_CONFORMANCE_URL"], timeout=300.0)


fastapi.testclient.TestClient = _client
"""


def main() -> int:
    """Runs the tests; returns pytest's exit code, the worst of the two."""
    given, passed_on = _arguments()
    environment = {
        **os.environ,
        "ASSAY_CONFORMANCE_URL": given.url,
        "SANDBOX_FUSION_URL": f"{given.url}/run_code",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    codes = [0]
    with tempfile.TemporaryDirectory() as folder:
        if given.sandbox_fusion:
            Path(folder, "assay_conformance.py").write_text(_PLUGIN)
            tests = given.sandbox_fusion / "sandbox" / "tests"
            chosen = [str(tests / "runners" / f"test_{name}.py") for name in RUNNERS]
            chosen += [str(tests / "datasets" / f"test_{name}.py") for name in DATASETS]
            path = [folder, str(given.sandbox_fusion)]
            flags = ["-p", "assay_conformance", "-o", "addopts=", "-o", "asyncio_mode=auto"]
            codes.append(_pytest(given, environment, path, [*flags, *chosen, *passed_on]))
        if given.verl:
            _stand_before(Path(folder), given.verl)
            codes.append(
                _pytest(given, environment, [folder], [str(given.verl / VERL), *passed_on])
            )
    return max(codes)


def _arguments() -> tuple[argparse.Namespace, list[str]]:
    own, passed_on = sys.argv[1:], []
    if "--" in own:
        place = own.index("--")
        own, passed_on = own[:place], own[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("url", help="where the sandbox answers HTTP")
    parser.add_argument("--sandbox-fusion", type=Path, help="checkout of SandboxFusion")
    parser.add_argument("--verl", type=Path, help="checkout of verl")
    parser.add_argument("--python", default=sys.executable, help="interpreter to run them with")
    given = parser.parse_args(own)
    given.url = given.url.rstrip("/")
    if "://" not in given.url:
        given.url = f"http://{given.url}"
    if not (given.sandbox_fusion or given.verl):
        parser.error("name a checkout: --sandbox-fusion, --verl, or both")
    for name in ("sandbox_fusion", "verl"):
        folder = getattr(given, name)
        if folder is not None:
            setattr(given, name, folder.resolve())
    return given, passed_on


def _stand_before(folder: Path, checkout: Path) -> None:
    """Packages `verl` and `verl.utils` that import nothing and find the checkout's modules."""
    for package in ("verl", "verl/utils"):
        Path(folder, package).mkdir()
        text = f"__path__.append({str(checkout / package)!r})\n"
        Path(folder, package, "__init__.py").write_text(text)


def _pytest(
    given: argparse.Namespace, environment: dict[str, str], path: list[str], arguments: list[str]
) -> int:
    # A checkout's own pytest settings and this project's are both left out.
    command = [given.python, "-m", "pytest", "-c", os.devnull, "--rootdir", path[0],
               "-p", "no:cacheprovider", "-q", *arguments]  # fmt: skip
    found = environment | {"PYTHONPATH": os.pathsep.join(path)}
    return subprocess.run(command, env=found, cwd=path[-1], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
