"""`python` and `bash` over a real sandbox: what the policy reads, and whose doing an end is."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from assay.clients.services import EmbeddedServices
from assay.clients.testing import FakeRewardServer
from assay.clients.types import Item
from assay.environments import Ending, Episode, EpisodeLimits, Reply, ToolCall
from assay.environments.cells import cut
from assay.environments.environment import Environment, Proof
from assay.environments.selftest import insist, prove
from assay.environments.services import EpisodeSandbox, RewardServices, open_sandbox
from assay.environments.shipped.python import PythonEnvironment, PythonSettings
from assay.environments.shipped.shell import ShellEnvironment
from assay.kit.errors import ConfigError
from worlds_support import call, named, play

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")
ROW = {"prompt": "?", "reference": "42", "verifier": "exact"}


@pytest.fixture(scope="module")
def services() -> Iterator[EmbeddedServices]:
    flags = {"sandbox": ("--languages", "python", "--slots", "2", "--log-level", "ERROR")}
    with EmbeddedServices(("sandbox", "reward"), arguments=flags) as services:
        yield services


@pytest.fixture(scope="module")
def sandbox(services: EmbeddedServices) -> Iterator[EpisodeSandbox]:
    with open_sandbox(services.address_of("sandbox")) as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def rewards(services: EmbeddedServices) -> Iterator[RewardServices]:
    with RewardServices(services.address, verifier="exact") as rewards:
        yield rewards


def py(code: str) -> ToolCall:
    return call("python", code=code)


@pytest.mark.parametrize("kind", [PythonEnvironment, ShellEnvironment])
def test_an_environment_proves_itself(
    kind: type[Environment], sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    results = prove(kind, kind.Settings(), rewards, sandbox)
    insist(kind, results)
    assert len(results) >= 2
    assert {one.proof.reward for one in results} == {0.0, 1.0}


def test_an_environment_that_pays_for_nothing_is_stopped(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    class Generous(PythonEnvironment):
        name = "generous"

        async def reward(self) -> float:
            return 1.0

    results = prove(Generous, PythonSettings(), rewards, sandbox)
    with pytest.raises(ConfigError, match=r"expected reward 0, ending answered; found reward 1"):
        insist(Generous, results)


def test_a_script_that_is_not_taken_whole_is_no_proof(rewards: RewardServices) -> None:
    class Hasty(Environment):
        name = "hasty"

        @classmethod
        def proofs(cls, settings: object) -> list[Proof]:
            return [Proof({"prompt": "?"}, ("a", "b"), 1.0)]

        def reward(self) -> float:
            return 1.0

    [result] = prove(Hasty, Hasty.Settings(), rewards)
    assert not result.ok
    assert "1 turns of the script not taken" in result.found


async def test_a_notebook_is_shown(sandbox: EpisodeSandbox, rewards: RewardServices) -> None:
    turns = [
        py("import sys\nx = 6\nprint('on the way'); print('careful', file=sys.stderr)\nx * 7"),
        py("x / 0"),
        py("None"),
        "42",
    ]
    outcome, read = await play(PythonEnvironment, ROW, turns, shared=sandbox, services=rewards)
    assert read[1] == "on the way\ncareful\n42"
    assert read[2].endswith("ZeroDivisionError: division by zero")
    assert read[3] == "[no output]"
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 1.0)


async def test_a_long_answer_is_cut_in_its_middle(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    turns = [py("print('a' * 5000 + 'end')"), "42"]
    _, read = await play(
        PythonEnvironment, ROW, turns, shared=sandbox, services=rewards,
        settings={"result_chars": 300},
    )  # fmt: skip
    assert len(read[1]) <= 300
    assert read[1].startswith("aaa")
    assert read[1].endswith("end")
    assert "characters left out" in read[1]


def test_cutting_keeps_to_any_length() -> None:
    for chars in range(80):
        assert len(cut("x" * 500, chars)) <= chars
    assert cut("short", 5) == "short"


ENDS = [
    ("import os; os._exit(3)", "the process died"),
    ("import ctypes; ctypes.string_at(0)", "the process died (signal 11"),
    ("x = bytearray(10**9)", "stopped: it used more memory"),
    ("while True: pass", "stopped: it ran longer than 1 seconds"),
    ("import time; time.sleep(60)", "stopped: it ran longer than 1 seconds"),
    ("raise SystemExit(2)", "exited with code 2"),
    ("import sys\nwhile True: sys.stdout.write('x' * 10**6)", "stopped: it"),
    ("a = '\ud800'", "surrogate"),
    ("x = 1\0", "null"),
    ("input()", "EOFError"),
    ("(" * 5000, "Error"),
]


@pytest.mark.parametrize(("code", "said"), ENDS)
async def test_what_a_program_does_to_its_session_is_told_and_survived(
    sandbox: EpisodeSandbox, rewards: RewardServices, code: str, said: str
) -> None:
    turns = [py("open('f', 'w').write('kept')"), py(code), py("print(open('f').read())"), "42"]
    outcome, read = await play(
        PythonEnvironment, ROW, turns, shared=sandbox, services=rewards,
        settings={"cell_s": 1.0 if "longer" in said else 30.0, "memory_mb": 256},
    )  # fmt: skip
    assert said in read[2]
    assert read[3] == "kept"
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 1.0)


async def test_a_session_that_ends_between_two_calls_is_told_and_begun_anew(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    later = (
        "import os, threading; open('f', 'w').write('kept'); threading.Timer({s}, {act}).start()"
    )
    episode = Episode(PythonEnvironment(PythonSettings(), sandbox, rewards))
    await episode.begin(ROW)
    dies = later.format(s=0.1, act="lambda: os._exit(5)")
    await episode.take(Reply("", calls=(py(dies),)))
    await asyncio.sleep(1.0)
    observation = await episode.take(Reply("", calls=(py("1"), py("open('f').read()"))))
    assert observation is not None
    first, second = (message.content for message in observation.messages)
    assert first.startswith("error: this was not run")
    assert second == "'kept'"
    await episode.take(Reply("42", answer="42"))
    assert (await episode.end()).result.reward == 1.0


def test_services_that_are_closed_start_nothing_any_more() -> None:
    services = RewardServices()
    services.close()
    result = asyncio.run(services.score(Item("42", "42", verifier="exact")))
    assert result.fault is not None
    assert services._embedded is None


async def test_who_ends_its_sessions_too_often_has_spent_its_budget(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    turns = [py("import os; os._exit(0)")] * 3
    outcome, _ = await play(
        PythonEnvironment, ROW, turns, shared=sandbox, services=rewards, settings={"restarts": 1}
    )
    assert (outcome.ending, outcome.result.reward) == (Ending.BUDGET_SPENT, 0.0)
    assert outcome.trains


async def test_cpu_time_is_that_of_all_sessions_of_an_episode(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass\nimport os; os._exit(0)"
    turns = [py(burn), py(burn), py("1")]
    outcome, _ = await play(
        PythonEnvironment, ROW, turns, shared=sandbox, services=rewards,
        settings={"cpu_s": 1.2, "restarts": 9},
    )  # fmt: skip
    assert outcome.ending is Ending.BUDGET_SPENT
    assert outcome.trains


async def test_the_last_call_is_no_answer(sandbox: EpisodeSandbox, rewards: RewardServices) -> None:
    row = {**ROW, "reference": "<call>"}
    limits = EpisodeLimits(turns=1, seconds=60)
    outcome, _ = await play(
        PythonEnvironment, row, [py("1")], shared=sandbox, services=rewards, limits=limits
    )
    assert outcome.ending is Ending.TURN_LIMIT
    assert outcome.result.reward == 0.0


async def test_set_up_code_of_ours_that_fails_is_a_fault_and_of_theirs_is_not(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    outcome, _ = await play(
        PythonEnvironment, {**ROW, "setup": "import nowhere"}, ["42"], shared=sandbox,
        services=rewards,
    )  # fmt: skip
    assert outcome.ending is Ending.FAULT
    assert outcome.result.fault is not None
    turns = [
        py("tool = open('helpful.py', 'w').write('raise SystemExit(1)')"),
        py("import os; os._exit(0)"),
        py("2"),
        "42",
    ]
    row = {**ROW, "setup": "import helpful", "files": {"helpful.py": ""}}
    outcome, read = await play(PythonEnvironment, row, turns, shared=sandbox, services=rewards)
    assert read[3] == "2"
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 1.0)


async def test_an_episode_that_is_cut_by_its_seconds_does_not_train(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    limits = EpisodeLimits(seconds=1.5)
    outcome, _ = await play(
        PythonEnvironment, ROW, [py("import time; time.sleep(5)"), "42"], shared=sandbox,
        services=rewards, limits=limits,
    )  # fmt: skip
    assert outcome.ending is Ending.TIME_LIMIT
    assert not outcome.trains


@pytest.mark.parametrize(
    ("kind", "tool", "code"),
    [
        (PythonEnvironment, "python", "import random; random.random()"),
        (PythonEnvironment, "python", "import numpy as np; float(np.random.rand())"),
        (PythonEnvironment, "python", "hash('a'), list({'a', 'b', 'c', 'd', 'e'})"),
        (PythonEnvironment, "python", "import os; os.getcwd(), sorted(os.environ), os.listdir()"),
        (
            ShellEnvironment,
            "bash",
            "pwd; env | sort; ls -a; id; umask; python3 -c 'print({*\"ab\"})'",
        ),
    ],
)
async def test_what_is_repeatable_says_the_same_again(
    sandbox: EpisodeSandbox,
    rewards: RewardServices,
    kind: type[Environment],
    tool: str,
    code: str,
) -> None:
    assert kind.repeatable
    turns = [call(tool, **{"code" if tool == "python" else "command": code}), "42"]
    several = [await play(kind, ROW, turns, shared=sandbox, services=rewards) for _ in range(3)]
    assert len({read[1] for _, read in several}) == 1


async def test_an_answer_with_half_a_character_is_wrong_and_no_fault(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    outcome, _ = await play(PythonEnvironment, ROW, ["4\ud8002"], shared=sandbox, services=rewards)
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 0.0)


async def test_tools_of_the_shell(sandbox: EpisodeSandbox, rewards: RewardServices) -> None:
    turns = [
        call("bash", command="mkdir -p d; cd d; echo one > f; x=5"),
        call("bash", command="pwd; echo $x; exit 7"),
        call("edit_file", path="d/f", old="one", new="two"),
        call("edit_file", path="d/f", old="three", new="two"),
        call("edit_file", path="d/none", old="three", new="two"),
        call("write_file", path="../out", content="x"),
        call("write_file", path="/etc/passwd", content="x"),
        call("write_file", path="a\0b", content="x"),
        call("write_file", path="/box/deep/er/g", content="g"),
        call("bash", command="cat f ../deep/er/g"),
        call("bash", command="cat 'unclosed"),
        "42",
    ]
    outcome, read = await play(ShellEnvironment, ROW, turns, shared=sandbox, services=rewards)
    assert read[2].splitlines()[:2] == ["/sandbox/run/box/d", "5"]
    assert "exited with code 7" in read[2]
    assert read[3] == "changed d/f"
    assert "occurs 0 times" in read[4]
    assert "no file" in read[5]
    assert all("no path in the working folder" in one for one in read[6:9])
    assert read[10] == "two\ng"
    assert "[exit code" in read[11]
    assert outcome.result.reward == 1.0


async def test_a_disk_that_is_full_is_the_policys_doing(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    turns = [
        call("bash", command="head -c 300M /dev/zero > big; ls | wc -l"),
        call("write_file", path="more", content="x" * 100_000),
        call("bash", command="kill -9 $$"),
        call("bash", command="echo up"),
        "42",
    ]
    outcome, read = await play(
        ShellEnvironment, ROW, turns, shared=sandbox, services=rewards,
        settings={"memory_mb": 128},
    )  # fmt: skip
    assert read[2].startswith("error: ")
    assert "up" in read[4]
    assert (outcome.ending, outcome.result.reward) == (Ending.ANSWERED, 1.0)


def test_services_answer_on_any_loop_at_once(
    sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    found: list[float | None] = []

    async def one() -> None:
        outcome, _ = await play(
            PythonEnvironment, ROW, [py("6 * 7"), "42"], shared=sandbox, services=rewards
        )
        found.append(outcome.result.reward)

    async def several() -> None:
        await asyncio.gather(*(one() for _ in range(3)))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [1.0] * 9


@pytest.mark.slow
async def test_a_reward_server_that_is_away_is_a_fault() -> None:
    with RewardServices("127.0.0.1:9", verifier="exact", timeout_s=0.5) as away:
        result = await away.score(Item("42", "42"))
    assert result.fault is not None
    assert result.reward is None


async def test_the_runs_verifier_is_asked_where_the_item_names_none() -> None:
    with FakeRewardServer() as server:
        services = RewardServices(
            server.address, verifier="fake", parameters={}, labels={"run": "a"}
        )
        with services:
            await services.score(Item("42", "42"))
            await services.score(Item("42", "42", verifier="other"))
    seen = [item for batch in server.requests for item in batch]
    assert [item.verifier for item in seen] == ["fake", "other"]
    assert dict(seen[0].labels) == {"run": "a"}


def test_packages_are_checked_at_the_start(services: EmbeddedServices) -> None:
    address = services.address_of("sandbox")
    with (
        pytest.raises(ConfigError, match="has no package nowhere"),
        open_sandbox(address, ("nowhere",)),
    ):
        pass


async def test_a_session_that_is_killed_from_outside_is_a_fault(
    services: EmbeddedServices, sandbox: EpisodeSandbox, rewards: RewardServices
) -> None:
    name = f"world-{os.getpid()}"
    mark = f"import ctypes; ctypes.CDLL(None).prctl(15, {name.encode()!r}, 0, 0, 0)"
    environment = PythonEnvironment(PythonSettings(), sandbox, rewards)
    episode = Episode(environment, EpisodeLimits(seconds=60))
    await episode.begin(ROW)
    await episode.take(Reply("", calls=(py(mark),)))
    killed = named(name)
    assert killed
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    assert await episode.take(Reply("", calls=(py("1"),))) is None
    outcome = await episode.end()
    assert outcome.ending is Ending.FAULT
    assert outcome.result.fault is not None
    assert outcome.result.fault.reason == "SESSION_LOST"
    assert outcome.result.reward is None
