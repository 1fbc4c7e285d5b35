"""The wheels in fresh environments: `make test-packages`.

Each environment holds what the wheels' metadata asks for and nothing else (wheels_support).
"""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from wheels_support import Environment, Wheel, build_wheels, fresh_environment

pytestmark = pytest.mark.packages

USER = """
from assay.clients import Fault, Item, Judgement, Result, RewardClient


def rewards(texts: list[str]) -> list[float | None]:
    with RewardClient("127.0.0.1:50051") as client:
        results: list[Result] = client.score([Item(t, reference="4", task="math") for t in texts])
    return [result.reward for result in results]


def why(result: Result) -> str:
    match result.outcome:
        case Judgement(verdict=verdict):
            return verdict
        case Fault(reason=reason):
            return reason
"""
WRONG = """
from assay.clients import Item, Result, RewardClient


def total(client: RewardClient) -> float:
    results: list[Result] = client.score([Item("4", refrence="4")])
    client.score("4")
    client.scor([])
    return results[0].reward
"""


@pytest.fixture(scope="module")
def wheels(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wheel]:
    return build_wheels(repository, tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def client(wheels: dict[str, Wheel], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return fresh_environment(tmp_path_factory.mktemp("client") / "venv", wheels, "assay-clients")


@pytest.fixture(scope="module")
def services(wheels: dict[str, Wheel], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    names = ("assay-clients", "assay-reward-server", "assay-sandbox")
    return fresh_environment(tmp_path_factory.mktemp("services") / "venv", wheels, *names)


def check(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_client_alone(client: Environment) -> None:
    assert check(client.run("assay", "--version")) == "assay, version 0.1.0\n"
    listed = check(client.run("assay", "--help"))
    commands = {line.split()[0] for line in listed.partition("Commands:")[2].splitlines() if line}
    assert {"score", "serve", "verifiers"} <= commands
    assert commands & {"train", "journal", "train-rm"} == set()
    code = "import assay.clients.trl, assay.clients.execution, assay.clients.judging, assay.clients"
    where = check(client.run("python", "-c", f"{code}; print(assay.clients.__file__)"))
    assert str(client.site) in where


def test_the_client_alone_says_what_to_install(client: Environment) -> None:
    (client.folder / "rows.jsonl").write_text('{"response": "4", "reference": "4"}\n')
    done = client.run("assay", "score", "rows.jsonl", "-o", "out.jsonl", "--task", "math")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "assay-reward-server" in done.stderr


def test_the_services_score_and_run(services: Environment) -> None:
    rows = [
        {"response": r"so \boxed{\frac{1}{2}}", "reference": "0.5", "task": "math"},
        {"response": "```python\nprint(int(input()) + 1)\n```", "task": "code",
         "tests": [{"stdin": "1\n", "stdout": "2\n"}]},
        {"response": "4", "reference": " ", "task": "math"},
    ]  # fmt: skip
    (services.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = services.run("assay", "score", "rows.jsonl", "-o", "out.jsonl", timeout_s=120)
    assert done.returncode == 0, done.stderr
    scored = (services.folder / "out.jsonl").read_text().splitlines()
    first, second, third = map(json.loads, scored)
    assert (first["reward"], second["reward"], third["reward"]) == (1.0, 1.0, None)
    assert third["fault"]["reason"] == "UNUSABLE_REFERENCE"
    (services.folder / "hello.py").write_text("print('hello')\n")
    assert check(services.run("assay", "run", "hello.py", timeout_s=120)) == "hello\n"
    for service in ("reward", "sandbox"):
        assert "--port" in check(services.run("assay", "serve", service, "--help"))


def test_what_is_installed_carries_its_licence(services: Environment, repository: Path) -> None:
    code = """
from importlib.metadata import distributions
for found in distributions():
    if found.name.startswith("assay-"):
        (path,) = [file for file in found.files if file.match("licenses/LICENSE")]
        print(found.name, found.read_text(f"licenses/{path.name}") == open("LICENSE").read())
"""
    (services.folder / "LICENSE").write_bytes((repository / "LICENSE").read_bytes())
    lines = check(services.run("python", "-c", code)).splitlines()
    names = ("assay-api", "assay-clients", "assay-reward-server", "assay-sandbox")
    assert sorted(lines) == [f"{name} True" for name in names]


def test_a_judge_service(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-genrm")
    assert "--model" in check(environment.run("assay", "serve", "genrm", "--help", timeout_s=120))
    assert check(environment.run("assay", "label-code", "--help", timeout_s=120))
    code = "import assay.genrm.engines.worker.loop, sys; assert 'torch' in sys.modules"
    check(environment.run("python", "-W", "ignore", "-c", code, timeout_s=200))


def test_a_judge_service_loads_no_torch_where_another_server_holds_the_model(
    wheels: dict[str, Wheel], tmp_path: Path
) -> None:
    heavy = ("torch", "transformers")
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-genrm", without=heavy)
    code = "import assay.genrm.__main__, assay.genrm.server, assay.genrm.engines.openai.engine"
    check(environment.run("python", "-c", code, timeout_s=120))


def test_the_trainer(wheels: dict[str, Wheel], tmp_path: Path, repository: Path) -> None:
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-trainer")
    config = str(repository / "configs" / "quickstart.toml")
    explained = check(environment.run("assay", "train", "--explain", config, timeout_s=120))
    assert "smollm2-135m-instruct" in explained
    assert check(environment.run("assay", "train-rm", "--help", timeout_s=120))
    (tmp_path / "pairs.jsonl").write_text(
        "".join(
            json.dumps({"prompt": f"{n}?", "chosen": "yes", "rejected": "no"}) + "\n"
            for n in range(4)
        )
    )
    asked = ["model.name=tiny", f"data.paths=['{tmp_path}/pairs.jsonl']", "eval.prompts=1"]
    config = str(repository / "configs" / "rm-pairwise.toml")
    alone = environment.run("assay", "train-rm", config, *asked, timeout_s=200)
    assert alone.returncode == 1
    assert "pip install ./genrm" in alone.stderr.splitlines()[-1]
    code = "import assay.trainer.recipes.train, assay.trainer.core.trainer"
    check(environment.run("python", "-W", "ignore", "-c", code, timeout_s=200))


def test_types_of_the_installed_wheel_reach_a_user(client: Environment, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    right = _mypy(client, tmp_path, "user.py")
    assert right.returncode == 0, right.stdout
    wrong = _mypy(client, tmp_path, "wrong.py")
    assert wrong.returncode == 1, wrong.stdout
    for code in ("call-arg", "arg-type", "attr-defined", "return-value"):
        assert f"[{code}]" in wrong.stdout, textwrap.indent(wrong.stdout, "  ")


def _mypy(client: Environment, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", ""]
    command += ["--cache-dir", str(folder / "cache"), "--python-executable", str(client.python)]
    return subprocess.run(
        [*command, name], cwd=folder, capture_output=True, text=True, check=False, timeout=200
    )
