"""The scripts in examples/ run: whole where the trainer is here, else the part that needs none.

`tests/adapters/test_examples.py` runs the rest with the trainers, in `make test-adapters`.
"""

from __future__ import annotations

import ast
import asyncio
import importlib
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from assay.clients import EmbeddedServices
from assay.clients.trainers.common.settings import close_clients, read_settings

RIGHT, WRONG = r"so \boxed{4}", r"so \boxed{5}"
WHOLE = {"client.py", "http.sh", "http_requests.py", "math_library.py", "trl_grpo.py"}


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedServices]:
    with EmbeddedServices() as services:
        yield services


@pytest.fixture
def around(server: EmbeddedServices, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("ASSAY_TARGET", server.address)
    yield monkeypatch
    close_clients()


@pytest.fixture(scope="module")
def examples(repository: Path) -> Path:
    return repository / "examples"


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def arguments_of(script: Path) -> dict[str, str]:
    """The options of a script's one command, and its keys; variables have their defaults."""
    text = re.sub(r'"?\$\{\w+:-([^}]*)\}"?', r"\1", script.read_text())
    text = text.replace('"$(dirname "$0")', f'"{script.parent}').replace("\\\n", " ")
    words = shlex.split(text.rpartition("set -eu\n")[2], comments=True)
    found = {}
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word.startswith("--"):
            found[word] = following
        elif "=" in word:
            name, _, value = word.partition("=")
            found[name] = value
    return found


def loaded(path: Path) -> Any:
    """A module by its file, as OpenRLHF and others load it."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def test_every_example_is_in_the_table_and_says_what_was_run(examples: Path) -> None:
    files = {path.name: path.read_text() for path in examples.iterdir() if path.is_file()}
    table = files.pop("README.md")
    assert set(re.findall(r"^\|.*?\[`([\w.]+)`\]", table, re.MULTILINE)) | set(
        re.findall(r"\[`([\w.]+)`\]\(", table)
    ) == set(files)
    for name, text in files.items():
        head = " ".join(text.replace("#", " ").split())
        assert (
            ("Run in the tests" in head)
            or ("Run in `make test-adapters`" in head)
            or (name == "nemo_gym.yaml")
        ), name
        if name.endswith(".py"):
            ast.parse(text)
        if name.endswith(".sh"):
            run("sh", "-n", examples / name)
        assert len(text.splitlines()) <= 90, name


def test_the_client(examples: Path, server: EmbeddedServices) -> None:
    told = run(sys.executable, examples / "client.py", ASSAY_TARGET=server.address)
    assert told.stdout.splitlines() == [
        "1.0 correct",
        "0.0 incorrect",
        "no judgement: UNUSABLE_REFERENCE",
        "1.0 correct",
    ]


@pytest.mark.slow
def test_http(examples: Path, tmp_path: Path) -> None:
    with EmbeddedServices(arguments={"reward": ["--http-port", "0"]}, log_dir=tmp_path):
        out = tmp_path / "reward.out"
        while not (ready := re.search(r" http on (\S+:\d+)$", out.read_text(), re.MULTILINE)):
            time.sleep(0.05)
        url = f"http://{ready[1]}"
        curled = run("sh", examples / "http.sh", ASSAY_URL=url).stdout
        for word in ('"correct"', '"incorrect"', "no answer can be read"):
            assert word in curled
        assert '"reward":1' in curled.replace(" ", "")
        asked = run(sys.executable, examples / "http_requests.py", ASSAY_URL=url)
    first, second = asked.stdout.splitlines()
    assert first == "1.0"
    assert second.startswith("no judgement: no answer can be read")


def test_the_library(examples: Path) -> None:
    told = run(sys.executable, examples / "math_library.py")
    assert told.stdout == "1.0\n[1.0, 0.0, None]\n"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_trl_learns(examples: Path, server: EmbeddedServices) -> None:
    told = run(
        sys.executable, examples / "trl_grpo.py", "120",
        ASSAY_TARGET=server.address, OMP_NUM_THREADS="1",
    )  # fmt: skip
    means = [float(mean) for mean in re.findall(r"12 steps: (\d\.\d\d)", told.stdout)]
    assert len(means) == 2
    assert means[1] > means[0] + 0.1
    assert told.stderr.count("first contact with the reward server") == 1


def test_verl(examples: Path, around: Any) -> None:
    keys = arguments_of(examples / "verl_grpo.sh")
    prefix = "reward.custom_reward_function."
    own = f"+{prefix}reward_kwargs."
    options = {name.removeprefix(own): keys[name] for name in keys if name.startswith(own)}
    assert options == {"target": "127.0.0.1:50051", "task": "math"}
    module = keys[f"{prefix}path"].removeprefix("pkg://")
    function = named(f"{module}.{keys[prefix + 'name']}")
    options["target"] = os.environ["ASSAY_TARGET"]
    told = asyncio.run(function("openai/gsm8k", RIGHT, "4", {"split": "train"}, **options))
    assert (told["score"], told["verdict"]) == (1.0, "correct")


def test_openrlhf(examples: Path, around: Any) -> None:
    options = arguments_of(examples / "openrlhf_grpo.sh")
    assert options["ASSAY_ON_FAULT"] == "drop"
    assert "--algo.dynamic_filtering_enable" in options, "without it NaN reaches the loss"
    around.setenv("ASSAY_TASK", options["ASSAY_TASK"])
    around.setenv("ASSAY_ON_FAULT", options["ASSAY_ON_FAULT"])
    module = loaded(Path(options["--reward.remote_url"]))
    queries = [f"2+2?{RIGHT}</s>", f"2+2?{WRONG}</s>", f"2+2?{RIGHT}"]
    told = module.reward_func(queries, ["2+2?"] * 3, ["4", "4", " "])
    assert told["rewards"].isnan().tolist() == [False, False, True]
    assert told["rewards"][:2].tolist() == [1.0, 0.0]


def test_slime(examples: Path, around: Any) -> None:
    options = arguments_of(examples / "slime_grpo.sh")
    around.setenv("ASSAY_TASK", options["ASSAY_TASK"])
    around.setenv("ASSAY_ON_FAULT", options["ASSAY_ON_FAULT"])
    rewards = named(options["--custom-rm-path"])
    assert callable(named(options["--dynamic-sampling-filter-path"]))
    samples = [
        SimpleNamespace(
            prompt="2+2?", response=text, response_length=5, label="4", index=0, group_index=0,
            metadata={}, status=None,
        )
        for text in (RIGHT, WRONG)
    ]  # fmt: skip
    assert asyncio.run(rewards(SimpleNamespace(reward_key=None), samples)) == [1.0, 0.0]


def test_areal(examples: Path, around: Any) -> None:
    tree = ast.parse((examples / "areal_grpo.py").read_text())
    [workflow] = [
        node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    ]
    module, _, name = str(workflow).rpartition(".")
    adapter = importlib.import_module(module)
    assert name == "RLVRWorkflow"
    around.setenv("ASSAY_TASK", "math")
    row = {"messages": [{"role": "user", "content": "2+2?"}], "answer": "4"}
    for text, reward in ((RIGHT, 1.0), (WRONG, 0.0)):
        asked = adapter.async_reward_fn("2+2?", text, [1], [2], **row)
        assert asyncio.run(asked) == reward


def test_verifiers(examples: Path, around: Any) -> None:
    tree = tomllib.loads((examples / "verifiers_v1.toml").read_text())
    rewards = tree["orchestrator"]["train"]["source"]["env"]["taskset"]["task"]["rewards"]
    around.setenv("ASSAY_TASK", "math")

    class Data(dict[str, Any]):
        prompt_text = "2+2?"

    trace = SimpleNamespace(last_reply=RIGHT, record_metrics=lambda _: None)
    assert asyncio.run(named(rewards["assay"]["fn"])(Data(answer="4"), trace)) == 1.0


@pytest.mark.parametrize("name", ["roll_rlvr.yaml", "nemo_gym.yaml"])
def test_settings_in_yaml_are_settings(examples: Path, name: str) -> None:
    tree = yaml.safe_load((examples / name).read_text())
    if name.startswith("roll"):
        found = read_settings({}, tree["rewards"]["math_rule"]["system_envs"])
    else:
        server = tree["assay"]["resources_servers"]["assay"]
        found = read_settings({k: v for k, v in server.items() if k != "entrypoint"}, {})
        assert found.on_fault == ""  # the default, which makes an error of a fault
    assert (found.target, found.task) == ("127.0.0.1:50051", "math")


def test_no_distribution_and_no_image_holds_them(repository: Path) -> None:
    ignored = (repository / ".dockerignore").read_text().splitlines()
    assert ignored[1] == "*"
    assert "!examples" not in ignored
    for project in repository.glob("**/pyproject.toml"):
        if ".venv" not in str(project):
            assert "examples" not in project.read_text(), project
