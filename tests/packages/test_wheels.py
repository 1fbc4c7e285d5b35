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
    return fresh_environment(tmp_path_factory.mktemp("client") / "venv", wheels, "assay-rl-clients")


@pytest.fixture(scope="module")
def command(wheels: dict[str, Wheel], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    folder = tmp_path_factory.mktemp("command") / "venv"
    return fresh_environment(folder, wheels, "assay-rl-clients[cli]")


@pytest.fixture(scope="module")
def services(wheels: dict[str, Wheel], tmp_path_factory: pytest.TempPathFactory) -> Environment:
    names = ("assay-rl-clients[cli]", "assay-rl-reward-server", "assay-rl-sandbox")
    return fresh_environment(tmp_path_factory.mktemp("services") / "venv", wheels, *names)


def check(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_client_alone(client: Environment) -> None:
    """What a trainer installs: it calls, and its command says in one line how to get it."""
    names = ("trainers.trl", "trainers.verl", "execution", "judging", "services", "testing")
    code = f"import {', '.join(f'assay.clients.{name}' for name in names)}, assay.clients, sys"
    code += "; assert not {'click', 'rich'} & set(sys.modules)"
    where = check(client.run("python", "-c", f"{code}; print(assay.clients.__file__)"))
    assert str(client.site) in where
    for words in (("assay", "--version"), ("python", "-m", "assay.cli", "score")):
        done = client.run(*words)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1, done.stderr
        assert "pip install './clients[cli]'" in done.stderr


def test_the_grader_of_mathematics_alone(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    """Beside sympy and nothing else: all tiers, the worker's too."""
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-rl-math")
    code = r"""
from assay.math import Fault, grade
assert grade(r"so \boxed{\frac{1}{2}}", "0.5").reward == 1.0
said = grade(r"\boxed{\sum_{k=1}^{n} k}", r"\frac{n(n+1)}{2}", timeout_s=60)
assert (said.verdict, said.tier) == ("correct", "symbolic"), said
assert isinstance(grade("4", " "), Fault)
from assay.math.math_verify import parse, verify
assert verify(parse("$0.5$"), parse("1/2"))
from importlib.metadata import distributions
print(*sorted(found.name for found in distributions()))
"""
    assert check(environment.run("python", "-W", "error", "-c", code)).split() == [
        "assay-rl-math", "mpmath", "sympy",
    ]  # fmt: skip
    for absent in ("grpc", "google.protobuf", "assay.clients", "assay.api", "numpy"):
        done = environment.run("python", "-c", f"import {absent}")
        assert "ModuleNotFoundError" in done.stderr, absent


def test_the_command(command: Environment) -> None:
    assert check(command.run("assay", "--version")) == "assay, version 0.1.0\n"
    listed = check(command.run("assay", "--help"))
    commands = {line.split()[0] for line in listed.partition("Commands:")[2].splitlines() if line}
    assert {"score", "serve", "verifiers"} <= commands
    assert commands & {"train", "journal", "train-rm"} == set()


def test_the_command_alone_says_what_to_install(command: Environment) -> None:
    (command.folder / "rows.jsonl").write_text('{"response": "4", "reference": "4"}\n')
    done = command.run("assay", "score", "rows.jsonl", "-o", "out.jsonl", "--task", "math")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "assay-rl-reward-server" in done.stderr


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
    (services.folder / "extra.jsonl").write_text('{"response": "4", "reference": "4"}\n')
    asked = ("extra.jsonl", "-o", "extra-out.jsonl", "--verifier", "count")
    done = services.run("assay", "score", *asked, timeout_s=120)
    assert done.returncode == 1
    assert "pip install ./plugins/verifiers_extra" in done.stderr
    (services.folder / "hello.py").write_text("print('hello')\n")
    assert check(services.run("assay", "run", "hello.py", timeout_s=120)) == "hello\n"
    for service in ("reward", "sandbox"):
        assert "--port" in check(services.run("assay", "serve", service, "--help"))


def test_the_plug_in_brings_its_verifiers(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    names = ("assay-rl-clients[cli]", "assay-rl-verifiers-extra")
    environment = fresh_environment(tmp_path / "venv", wheels, *names)
    rows = [
        {"response": "There are 4.", "reference": "4", "verifier": "count"},
        {"response": "Answer: 5.14e6 Pa", "reference": "50.7 atm", "verifier": "quantity"},
        {"response": "Guten Tag und vielen Dank.", "verifier": "language",
         "params": {"language": "de"}},
    ]  # fmt: skip
    (environment.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    check(environment.run("assay", "score", "rows.jsonl", "-o", "out.jsonl", timeout_s=120))
    scored = (environment.folder / "out.jsonl").read_text().splitlines()
    assert [json.loads(line)["reward"] for line in scored] == [1.0, 1.0, 1.0]


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
    names = ("api", "kit", "clients", "math", "reward-server", "sandbox")
    assert sorted(lines) == sorted(f"assay-rl-{name} True" for name in names)


ASK = """
import http.client, json, subprocess, sys
from importlib.util import find_spec

assert find_spec("assay.reward_server") is None
flags = ["--port", "0", "--http-port", "0", "--languages", "python", "--slots", "1"]
command = [sys.executable, "-m", "assay.sandbox", *flags, "--isolation-floor", "confined"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as sandbox:
    try:
        address = [sandbox.stdout.readline().split()[-1] for _ in range(2)][1]
        connection = http.client.HTTPConnection(address, timeout=50)
        body = {"language": "python", "code": "print(6 * 7)"}
        connection.request("POST", "/run_code", json.dumps(body))
        answer = connection.getresponse()
        print(answer.status, json.loads(answer.read()).get("run_result", {}).get("stdout"))
        connection.close()
    finally:
        sandbox.terminate()
"""


def test_the_sandbox_has_its_peers_formats_by_a_plug_in(
    wheels: dict[str, Wheel], tmp_path: Path
) -> None:
    """Without a reward server; without the plug-in its HTTP is there, and those paths are not."""
    alone = fresh_environment(tmp_path / "alone", wheels, "assay-rl-sandbox")
    assert check(alone.run("python", "-c", ASK)) == "404 None\n"
    with_faces = fresh_environment(tmp_path / "both", wheels, "assay-rl-sandbox", "assay-rl-compat")
    assert check(with_faces.run("python", "-c", ASK)) == "200 42\n\n"


def test_containers_as_boxes_come_with_a_plug_in(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    """No daemon answers there: each says in its last line what is missing."""
    serve = ("python", "-m", "assay.sandbox", "--port", "0", "--languages", "python")
    serve += ("--slots", "1", "--backend", "docker")
    alone = fresh_environment(tmp_path / "alone", wheels, "assay-rl-sandbox")
    done = alone.run(*serve)
    assert done.returncode == 1
    assert "there are jail; it comes with assay-rl-docker-backend" in done.stderr
    assert "pip install ./plugins/docker_backend" in done.stderr
    plugged = fresh_environment(tmp_path / "both", wheels, "assay-rl-docker-backend")
    done = plugged.run(*serve, DOCKER_HOST=f"unix://{tmp_path}/none.sock")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("assay sandbox: no Docker daemon answers at")


def test_workers_on_ray_come_by_a_plug_in(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    """Without the plug-in, and with it but without Ray, a service says in one line what to type."""
    install = "in a checkout of Assay, run: pip install './plugins/ray_pool[ray]'"
    asked = (
        "python",
        "-m",
        "assay.sandbox",
        "--port",
        "0",
        "--pool",
        "ray",
        "--ray-address",
        "h:1",
    )
    alone = fresh_environment(tmp_path / "alone", wheels, "assay-rl-sandbox")
    plugged = fresh_environment(tmp_path / "both", wheels, "assay-rl-sandbox", "assay-rl-ray-pool")
    absent = "--pool 'ray' is not installed here, where there is local; ray comes with"
    whys = [f"{absent} assay-rl-ray-pool; {install}", f"--pool ray needs Ray; {install}"]
    for environment, why in zip([alone, plugged], whys, strict=True):
        done = environment.run(*asked)
        assert (done.returncode, done.stderr) == (1, f"assay sandbox: {why}\n")


def test_a_judge_service(wheels: dict[str, Wheel], tmp_path: Path) -> None:
    environment = fresh_environment(
        tmp_path / "venv", wheels, "assay-rl-clients[cli]", "assay-rl-genrm"
    )
    assert "--model" in check(environment.run("assay", "serve", "genrm", "--help", timeout_s=120))
    assert check(environment.run("assay", "label-code", "--help", timeout_s=120))
    code = "import assay.genrm.engines.worker.loop, sys; assert 'torch' in sys.modules"
    check(environment.run("python", "-W", "ignore", "-c", code, timeout_s=200))


def test_a_judge_service_loads_no_torch_where_another_server_holds_the_model(
    wheels: dict[str, Wheel], tmp_path: Path
) -> None:
    heavy = ("torch", "transformers")
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-rl-genrm", without=heavy)
    code = "import assay.genrm.__main__, assay.genrm.server, assay.genrm.engines.openai.engine"
    check(environment.run("python", "-c", code, timeout_s=120))


def test_the_trainer(wheels: dict[str, Wheel], tmp_path: Path, repository: Path) -> None:
    environment = fresh_environment(tmp_path / "venv", wheels, "assay-rl-trainer")
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
