"""Harbor's tasks in a session: read or refused with a reason, proved by their oracles, attacked."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from assay.environments import Ending
from assay.environments.selftest import insist, prove
from assay.environments.services import EpisodeSandbox, open_sandbox
from assay.environments.shipped import harbor
from assay.environments.shipped.harbor import HarborEnvironment, HarborSettings
from assay.environments.shipped.harbor_tasks import TaskRefused, read_task
from worlds_support import call, play

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks"),
]

# In the manner of the format's own template: tools are installed over the network, then pytest
# runs, and its exit code is the reward.
TEMPLATE = """\
#!/bin/bash
apt-get update
apt-get install -y curl
curl -LsSf https://tool.invalid/uv/install.sh | sh
source $HOME/.local/bin/env
if [ "$PWD" = "/" ]; then echo "no working directory"; exit 1; fi
uvx -p 3.13 -w pytest==8.4.1 -w pytest-json-ctrf==0.3.5 pytest --ctrf /logs/verifier/ctrf.json /tests/test_outputs.py -rA
if [ $? -eq 0 ]; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi
"""  # noqa: E501  # a script
HELLO: dict[str, str] = {
    "task.toml": 'version = "1.0"\n[verifier]\ntimeout_sec = 60.0\n[environment]\ncpus = 1\n',
    "instruction.md": "Write /app/hello.txt with the text Hello.\n",
    "environment/Dockerfile": "FROM ubuntu:24.04\nRUN apt-get update && apt-get install -y git\n"
    "WORKDIR /app\nENV MODE=fast\n",
    "tests/test.sh": TEMPLATE,
    "tests/test_outputs.py": "from pathlib import Path\n\ndef test_hello():\n"
    '    assert Path("/app/hello.txt").read_text().strip() == "Hello"\n',
    "solution/solve.sh": '#!/bin/bash\necho "Hello" > /app/hello.txt\n',
}


def changed(**texts: str | None) -> dict[str, str]:
    """`HELLO` with other files; a name's "__" is "/", None removes."""
    files: dict[str, str] = dict(HELLO)
    for name, text in texts.items():
        path = next((one for one in files if _key(one) == name), name.replace("__", "/"))
        if text is None:
            files.pop(path, None)
        else:
            files[path] = text
    return files


def _key(path: str) -> str:
    return path.replace("/", "__").replace(".", "_")


def as_bytes(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode() for path, text in files.items()}


def dockerfile(text: str) -> dict[str, str]:
    return changed(environment__Dockerfile=text)


PREBUILT = {
    **changed(environment__Dockerfile=None),
    "task.toml": '[environment]\ndocker_image = "python:3.13-slim"\nworkdir = "/app"\n',
    "environment/given.txt": "g",
}
REFUSED: list[tuple[dict[str, str], str]] = [
    (changed(instruction_md=None), "no instruction.md"),
    (changed(tests__test_sh=None), "no tests/test.sh"),
    (changed(environment__Dockerfile=None), "no Dockerfile"),
    (changed(task_toml="[broken"), "task.toml cannot be read"),
    (changed(task_toml='[[steps]]\nname = "a"\n'), "several steps"),
    (changed(task_toml="[environment]\ngpus = 1\n"), "GPU"),
    (changed(task_toml='[environment]\nos = "windows"\n'), "not for Linux"),
    (changed(task_toml='[verifier]\nenvironment_mode = "separate"\n'), "container of their own"),
    (changed(task_toml='[verifier.env]\nKEY = "${KEY}"\n'), "the caller's KEY"),
    (changed(environment__docker_compose_yaml="a: b") | {"environment/docker-compose.yaml": ""},
     "several containers"),
    (dockerfile("FROM ghcr.io/some/image:latest\nWORKDIR /app\n"), "no plain base image"),
    (dockerfile("FROM python:3.12\nFROM python:3.13\nWORKDIR /app\n"), "no plain base image"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nRUN git clone x\n"), "needs a build: RUN git"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nRUN pip install x && make\n"), "RUN make"),
    (dockerfile("FROM python:3.12\n"), "names no working folder"),
    (PREBUILT | {"task.toml": '[environment]\ndocker_image = "a.invalid/b:1"\nworkdir = "/w"\n'},
     "built elsewhere"),
    (dockerfile("FROM python:3.12\nWORKDIR /\n"), "not one absolute path"),
    (dockerfile("FROM python:3.12\nWORKDIR /a\nWORKDIR /b\n"), "not one absolute path"),
    (dockerfile("FROM python:3.12\nWORKDIR /usr/x\n"), "another use"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nCOPY a /app/\n"), "is not there: a"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nCOPY Dockerfile ../x\n"), "out of the working"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nCOPY Dockerfile /etc/x\n"), "outside"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nADD https://a.invalid/x .\n"), "ADD https"),
    (dockerfile("FROM python:3.12\nWORKDIR /app\nENV PATH=/x\n"), "ENV PATH"),
    (dockerfile('FROM python:3.12\nWORKDIR /app\nENTRYPOINT ["x"]\n'), "ENTRYPOINT"),
]  # fmt: skip


@pytest.mark.parametrize(("files", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_run_here_is_refused_with_a_reason(files: dict[str, str], why: str) -> None:
    with pytest.raises(TaskRefused, match=why.replace("(", "\\(")):
        read_task(as_bytes(files))


def test_paths_of_a_container_become_those_of_a_session() -> None:
    text = "See /app, /app/x.txt, (/tests), /application, ~/app, x/app, /app.py, '/logs/a' /app."
    task = read_task(as_bytes(changed(instruction_md=text)))
    assert task.instruction == (
        "See /box, /box/x.txt, (/tmp/tests), /application, ~/app, x/app, /app.py, '/tmp/logs/a' "
        "/box."
    )
    assert task.env == {"MODE": "fast"}
    assert not task.tests_at_home
    assert task.installs == ("apt-get update", "apt-get install -y git")


@pytest.mark.parametrize(
    "image",
    [
        "python:3.12-slim@sha256:adc05bebf0ded87b", "docker.io/library/debian:12", "ubuntu AS one",
        "public.ecr.aws/docker/library/ubuntu:24.04", "buildpack-deps:bookworm",
    ],
)  # fmt: skip
def test_plain_base_images_are_taken(image: str) -> None:
    assert read_task(as_bytes(dockerfile(f"FROM {image}\nWORKDIR /app\n"))).files == {}


def test_what_a_dockerfile_copies_is_where_it_says() -> None:
    files = {
        **HELLO,
        "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\nCOPY . /app\n"
        "COPY a.txt b/c.txt data/\nCOPY b /app/deep/er\nCOPY a.txt /app/renamed.txt\n"
        "COPY b/. /app/dot\nRUN mkdir -p /app/x && chmod +x /app/a.txt\n",
        "environment/a.txt": "a",
        "environment/b/c.txt": "c",
    }
    assert set(read_task(as_bytes(files)).files) == {
        "a.txt", "b/c.txt", "data/a.txt", "data/c.txt", "deep/er/c.txt", "renamed.txt",
        "dot/c.txt",
    }  # fmt: skip
    assert read_task(as_bytes(files)).commands == ("mkdir -p /box/x", "chmod +x /box/a.txt")


def test_a_plain_image_needs_no_dockerfile() -> None:
    task = read_task(as_bytes(PREBUILT))
    assert task.files == {"given.txt": b"g"}
    assert task.instruction == "Write /box/hello.txt with the text Hello.\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[EpisodeSandbox]:
    with open_sandbox() as sandbox:
        yield sandbox


def laid_out(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def test_oracles_prove_the_tasks_of_a_folder(sandbox: EpisodeSandbox, tmp_path: Path) -> None:
    laid_out(tmp_path / "hello", HELLO)
    laid_out(tmp_path / "z/refused", dockerfile("FROM scratch\n"))
    settings = HarborSettings(folder=str(tmp_path))
    results = prove(HarborEnvironment, settings, None, sandbox)
    insist(HarborEnvironment, results)
    assert [one.proof.reward for one in results] == [1.0, 0.0, 1.0, 0.0]


def test_the_command_writes_the_rows_of_tasks_that_run(
    sandbox: EpisodeSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(HarborEnvironment, "open", lambda _: nullcontext(sandbox))
    laid_out(tmp_path / "hello", HELLO)
    lame = changed(solution__solve_sh="true\n", tests__test_sh=QUICK)
    laid_out(tmp_path / "lame", lame)
    laid_out(tmp_path / "generous", changed(tests__test_sh="echo 1 > /logs/verifier/reward.txt\n"))
    laid_out(tmp_path / "unproved", changed(solution__solve_sh=None))
    laid_out(tmp_path / "refused", dockerfile("FROM scratch\n"))
    assert harbor.main(str(tmp_path)) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["task"] for line in told.out.splitlines()] == ["hello"]
    why = dict(line.split(": ", 1) for line in told.err.splitlines())
    assert why["lame"].startswith("its oracle must earn 1")
    assert why["generous"].startswith("who does nothing must earn 0")
    assert "no solution" in why["unproved"]
    assert "no plain base image" in why["refused"]


async def earned(
    sandbox: EpisodeSandbox, files: Mapping[str, str], *scripts: str
) -> tuple[float | None, str]:
    turns = [*(call("bash", command=one) for one in scripts), "done"]
    outcome, _ = await play(HarborEnvironment, {"task_files": files}, turns, shared=sandbox)
    result = outcome.result
    told = result.judgement.explanation if result.judgement else str(result.fault)
    assert outcome.ending in {Ending.ANSWERED, Ending.FAULT}
    return result.reward, told


_SITE = ".local/lib/python3.11/site-packages"
_VERIFIER = "/tmp/logs/verifier"
_END = "echo 'import os; os._exit(0)'"
_PAY = "echo 'echo 1 > /tmp/logs/verifier/reward.txt; exit 0'"
PLANTED = [
    f"{_END} | tee conftest.py pytest.py sitecustomize.py _pytest.py",
    f"mkdir -p pytest; {_END} > pytest/__main__.py; touch pytest/__init__.py",
    f"mkdir -p {_SITE}; {_END} | tee {_SITE}/x.pth {_SITE}/usercustomize.py",
    f"mkdir -p .local/bin; {_PAY} > .local/bin/env",
    "printf '[pytest]\\naddopts = --co\\n' | tee pytest.ini tox.ini setup.cfg",
    f"{_PAY} | tee .bashrc .profile .bash_profile .bash_env; export BASH_ENV=/box/.bash_env",
    f"mkdir -p tests .assay_tests; {_PAY} | tee tests/test.sh .assay_tests/test.sh",
    "mkdir -p /tmp/shims; cd /tmp/shims; echo exit | tee uvx curl; chmod +x *; PATH=$PWD:$PATH",
    f"mkdir -p /tmp/tests {_VERIFIER}; echo 1 | tee {_VERIFIER}/reward.txt /tmp/tests/test.sh",
    "ln -s /tmp/logs/verifier/reward.txt hello.txt; mkfifo reward.txt",
    "(while :; do echo 1 > /tmp/logs/verifier/reward.txt; done) > /dev/null 2>&1 & disown",
    "mkdir hello.txt",
    "head -c 40M /dev/urandom > big",
]
OF_PYTEST = 4
QUICK = """\
source $HOME/.local/bin/env
if grep -qx Hello /app/hello.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
HARMLESS = 9
"""So many of them, from the first, leave a right solution as right as it was."""


@pytest.mark.parametrize("script", PLANTED, ids=range(len(PLANTED)))
async def test_what_is_planted_earns_nothing(sandbox: EpisodeSandbox, script: str) -> None:
    of_pytest = PLANTED.index(script) < OF_PYTEST
    files = HELLO if of_pytest else changed(tests__test_sh=QUICK)
    reward, told = await earned(sandbox, files, script)
    assert reward == 0.0, told


async def test_a_right_solution_beside_it_is_paid(sandbox: EpisodeSandbox) -> None:
    right = HELLO["solution/solve.sh"].replace("/app", "/box")
    reward, told = await earned(sandbox, HELLO, *PLANTED[:HARMLESS], right)
    assert reward == 1.0, told


async def test_rights_of_files_come_along_and_the_home_is_the_policys(
    sandbox: EpisodeSandbox,
) -> None:
    tests = (
        "if [ -x ~/run ] && [ ! -x ~/data ]; then echo 1; else echo 0; fi"
        " > /logs/verifier/reward.txt\n"
    )
    files = changed(tests__test_sh=tests)
    assert (await earned(sandbox, files, "echo x | tee run data; chmod +x run"))[0] == 1.0
    assert (await earned(sandbox, files, "echo x | tee run data"))[0] == 0.0


@pytest.mark.parametrize(
    ("wrote", "reward"),
    [
        ("echo 0.25 > /logs/verifier/reward.txt", 0.25),
        ('echo \'{"reward": 0.5, "style": 1}\' > /logs/verifier/reward.json', 0.5),
        ("echo '{\"passed\": 0.75}' > /logs/verifier/reward.json", 0.75),
        ("echo nan > /logs/verifier/reward.txt", None),
        ("echo '{}' > /logs/verifier/reward.json", None),
        ("echo well > /logs/verifier/reward.txt", None),
        ("exit 3", None),
    ],
)
async def test_what_tests_pay(sandbox: EpisodeSandbox, wrote: str, reward: float | None) -> None:
    found, told = await earned(sandbox, changed(tests__test_sh=wrote))
    assert found == reward, told


async def test_whoever_breaks_the_tests_earns_nothing_and_is_no_fault(
    sandbox: EpisodeSandbox,
) -> None:
    tests = "set -e\ntest ! -e /app/broken\necho 0 > /logs/verifier/reward.txt\n"
    reward, told = await earned(sandbox, changed(tests__test_sh=tests), "touch broken")
    assert reward == 0.0
    assert "its files end the tests" in told


async def test_what_a_build_does_with_files_is_done_at_the_start(sandbox: EpisodeSandbox) -> None:
    files = {
        **dockerfile(
            "FROM python:3.12\nWORKDIR /app\nCOPY a.sh .\nENV WHO=you\n"
            "RUN chmod +x /app/a.sh && git init -q && git config user.email a@b.c && \\\n"
            "    git config user.name a && git add -A && git commit -qm one\n"
        ),
        "environment/a.sh": "#!/bin/bash\necho hello $WHO\n",
        "tests/test.sh": "pytest /tests/test_outputs.py -rA --json-ctrf /logs/verifier/c.json\n"
        "echo $((1 - $?)) > /logs/verifier/reward.txt\n",
    }
    turns = [call("bash", command="./a.sh; git log --oneline | wc -l"), "done"]
    outcome, read = await play(HarborEnvironment, {"task_files": files}, turns, shared=sandbox)
    assert read[1] == "hello you\n1"
    assert outcome.result.reward == 0.0
    assert (await earned(sandbox, files, "echo Hello > hello.txt"))[0] == 1.0
    files["environment/Dockerfile"] += "RUN cp none there\n"
    reward, told = await earned(sandbox, files)
    assert reward is None
    assert "image's build" in told


async def test_a_task_that_cannot_run_is_a_fault(sandbox: EpisodeSandbox) -> None:
    reward, told = await earned(sandbox, dockerfile("FROM scratch\n"))
    assert reward is None
    assert "MALFORMED_ROW" in told
