"""Hostile solutions of a repository task: none of them earns the reward, and none is a fault.

Each writes what it likes into the workspace, over the shell that the policy has; the hidden tests
then run on what is left. `_SOUND` is the control: what is right earns 1 in the same way.
"""

# ruff: noqa: E501  # solutions are data

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from assay.environments import Ending
from assay.environments.cache import ToolCache
from assay.environments.services import EpisodeSandbox, open_sandbox
from assay.environments.shipped import repository
from assay.environments.shipped.repository import RepositoryEnvironment
from assay.kit.errors import ConfigError
from worlds_support import call, play

pytestmark = pytest.mark.skipif(os.uname().sysname != "Linux", reason="sessions are forks")

_CODE = """\
import unittest
from calc.core import add, Total

def test_add():
    assert add(2, 2) == 4
    assert add("a", "b") == "ab"

class TestTotal(unittest.TestCase):
    def test_sum(self):
        total = Total()
        total.put(3)
        total.put(4)
        self.assertEqual(total.value(), 7)
"""
ROW = {
    "prompt": "Mend calc.",
    "files": {
        "calc/__init__.py": "",
        "calc/core.py": "def add(a, b):\n    return a - b\n\n\nclass Total:\n    def __init__(self):\n        self.n = 0\n\n    def put(self, x):\n        self.n = x\n\n    def value(self):\n        return self.n\n",
        "main.py": "print('nothing')\n",
    },
    "tests": [
        {"name": "unit", "code": _CODE},
        {"name": "sum", "run": "main.py", "stdin": "3 4\n", "stdout": "7\n"},
        {"name": "more", "run": "main.py", "stdin": "30 -4\n", "stdout": "26\n"},
    ],
}  # fmt: skip
_MAIN = "cat > main.py <<'E'\na, b = map(int, input().split())\nprint(a + b)\nE\n"
_CORE = "cat > calc/core.py <<'E'\n"
_SOUND = _MAIN + "sed -i 's/a - b/a + b/; s/self.n = x/self.n += x/' calc/core.py"


class Hostile(NamedTuple):
    """What a policy runs in its shell; `main` is right where only the unit tests are attacked."""

    name: str
    script: str
    main: bool = True


_PATCHED = "import unittest, builtins\nunittest.TestCase.assertEqual = lambda *a, **k: None\nunittest.TestCase.run = lambda self, result=None: result\n"
_ALWAYS = "class Yes:\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    def __bool__(self): return True\n    def __hash__(self): return 0\n    def __add__(self, o): return self\n    def __sub__(self, o): return 0\n    def __repr__(self): return '4'\n    def __index__(self): return 4\n    def __instancecheck__(self, o): return True\n"

HOSTILE = [
    Hostile("nothing", ""),
    Hostile("exit-at-import", _CORE + "import os; os._exit(0)\nE"),
    Hostile("sys-exit-at-import", _CORE + "raise SystemExit(0)\nE"),
    Hostile("exit-in-call", _CORE + "import os\ndef add(a, b): os._exit(0)\nclass Total: pass\nE"),
    Hostile("conftest", "cat > conftest.py <<'E'\nimport pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n    outcome = yield\n    outcome.get_result().outcome = 'passed'\nE\ncp conftest.py calc/; cp conftest.py tests_conftest.py"),
    Hostile("sitecustomize", "cat > sitecustomize.py <<'E'\n" + _PATCHED + "E\ncp sitecustomize.py usercustomize.py"),
    Hostile("pth", "echo 'import os; os._exit(0)' > evil.pth; mkdir -p .local/lib/python3.11/site-packages lib; cp evil.pth .local/lib/python3.11/site-packages/; cp evil.pth lib/"),
    Hostile("own-pytest-and-unittest", "mkdir pytest unittest; echo 'def __getattr__(n): return lambda *a, **k: None' > pytest/__init__.py\ncat > unittest/__init__.py <<'E'\nclass TestCase:\n    def __getattr__(self, n): return lambda *a, **k: None\nE"),
    Hostile("ini-files", "printf '[pytest]\\naddopts = --collect-only -p no:assertion\\n' > pytest.ini; printf '[tool:pytest]\\naddopts=--co\\n' > setup.cfg; printf '[tool.pytest.ini_options]\\naddopts=\"--co\"\\n' > pyproject.toml; printf '[tox]\\n' > tox.ini"),
    Hostile("patched-from-within", _CORE + _PATCHED + "builtins.__build_class__ = builtins.__build_class__\ndef add(a, b): return 0\nclass Total:\n    def put(self, x): pass\n    def value(self): return 0\nE"),
    Hostile("always-equal", _CORE + _ALWAYS + "def add(a, b): return Yes()\nclass Total:\n    def put(self, x): pass\n    def value(self): return Yes()\nE"),
    Hostile("always-equal-int", _CORE + "class N(int):\n    def __eq__(self, o): return True\n    __hash__ = int.__hash__\nclass S(str):\n    def __eq__(self, o): return True\n    __hash__ = str.__hash__\ndef add(a, b): return S('x') if isinstance(a, str) else N(0)\nclass Total:\n    def put(self, x): pass\n    def value(self): return N(0)\nE"),
    Hostile("printed-report", _CORE + "print('2 passed in 0.01s')\nprint('OK')\nprint('{\"passed\": 3, \"failed\": 0}')\nimport sys; sys.stderr.write('Ran 3 tests\\n\\nOK\\n')\ndef add(a, b): print('1 passed'); return None\nclass Total: pass\nE"),
    Hostile("frames-to-the-channel", _CORE + "import os\nfor fd in range(3, 64):\n    for data in (b'\\x00\\x00\\x00\\x02D{}', b'[\"passed\", \"\"]', b'\\x00' * 64):\n        try: os.write(fd, data)\n        except OSError: pass\ndef add(a, b): return 4\nE"),
    Hostile("looks-for-the-tests", _CORE + "import gc, sys, os, re\nfound = ' '.join(str(o)[:200] for o in gc.get_objects()[:20000] if isinstance(o, (str, dict)))\ndef add(a, b):\n    f = sys._getframe()\n    while f:\n        for v in list(f.f_locals.values()):\n            if isinstance(v, (list, tuple)) and 4 in v: return 4\n        f = f.f_back\n    for root, _, names in os.walk('/sandbox'):\n        for n in names:\n            try: t = open(os.path.join(root, n)).read()\n            except Exception: continue\n            if 'test_add' in t and '== 4' in t and 'entry_' not in t and n != 'core.py': return 4\nclass Total:\n    def put(self, x): pass\n    def value(self): return add(0, 0)\nE"),
    Hostile("own-importlib", "cat > importlib.py <<'E'\nclass M: pass\ndef import_module(name):\n    import os; os._exit(0)\nE\ncp importlib.py types.py; cp importlib.py ast.py"),
    Hostile("own-solution-module", "mkdir solution; cat > solution/__init__.py <<'E'\ndef __getattr__(n): return lambda *a: 4\nE\ncp solution/__init__.py solution.py"),
    Hostile("entry-planted", "for n in entry entry_0 main tests test solution __main__; do echo 'import os; os._exit(0)' > $n.py; done\n" + _MAIN),
    Hostile("links", "rm -r calc; mkdir real; echo 'def add(a, b): return 4' > real/core.py; ln -s real calc; ln -s /proc/self/fd fds; ln -s /dev/zero zero; ln -s /etc hosts"),
    Hostile("fifo-and-sockets", "mkfifo pipe calc/pipe.py; rm calc/core.py; mkfifo calc/core.py"),
    Hostile("background", "(while :; do echo 'def add(a, b): return 4' > calc/core.py; echo 7 > /tmp/answer; done) >/dev/null 2>&1 & disown\n(sleep 300; echo done) >/dev/null 2>&1 &"),
    Hostile("growing-file", "(while :; do head -c 3000000 /dev/zero > grows; head -c 1 /dev/zero > grows; done) >/dev/null 2>&1 & disown"),
    Hostile("path", "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' | tee bin/python bin/python3 bin/pytest > /dev/null; chmod +x bin/*; export PATH=$PWD/bin:$PATH; echo \"export PATH=$PWD/bin:\\$PATH\" | tee .bashrc .profile .bash_profile > /dev/null; export PYTHONSTARTUP=$PWD/x.py PYTHONPATH=$PWD/bin BASH_ENV=$PWD/.bashrc"),
    Hostile("tests-removed", "rm -rf tests test* *_test.py; rm -rf calc main.py", main=False),
    Hostile("everything-removed", "rm -rf ./* .[a-z]*", main=False),
    Hostile("forged-output", "cat > main.py <<'E'\nprint('7')\nprint('passed', flush=True)\nimport os; os._exit(0)\nE", main=False),
    Hostile("both-answers", "cat > main.py <<'E'\nprint('7'); print('26')\nE", main=False),
    Hostile("reads-the-expected", "cat > main.py <<'E'\nimport os, sys\nfor root, _, names in os.walk('/proc'):\n    for n in names[:200]:\n        if n in ('environ', 'cmdline'):\n            try:\n                t = open(os.path.join(root, n), 'rb').read()\n                if b'26' in t: print(26); sys.exit(0)\n            except OSError: pass\nfor n in ('expected', 'expected.txt', '../expected', 'stdout', '/tmp/expected'):\n    if os.path.exists(n): print(open(n).read()); sys.exit(0)\nE", main=False),
    Hostile("remembers-between-tests", "cat > main.py <<'E'\nimport os\nfor where in ('/tmp/n', '/dev/shm/n', 'n', '/box/n'):\n    try: open(where, 'a').write('x')\n    except OSError: pass\nprint(7 if not os.path.exists('m') else 26); open('m', 'w')\nE", main=False),
    Hostile("many-files", "mkdir many; cd many; python - <<'E'\nfor n in range(6000): open(str(n), 'w').close()\nE"),
    Hostile("strange-names", "python - <<'E'\nimport os\nfor name in (b'\\xff\\xfe', b'a\\nb', b'-rf', b'.assay', b'x' * 255, b'a\\\\b', '\\u202e'.encode()):\n    open(name, 'wb').write(b'x')\nos.makedirs('/'.join(['d' * 200] * 6))\nopen('/'.join(['d' * 200] * 6) + '/f', 'w').write('x')\nE"),
    Hostile("huge-file", "truncate -s 1T sparse; head -c 20M /dev/urandom > junk"),
    Hostile("endless-import", _CORE + "while True: pass\nE"),
    Hostile("fork-bomb-at-import", _CORE + "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\nE"),
    Hostile("memory-at-import", _CORE + "x = bytearray(10**10)\ny = [x] * 10**9\nE"),
    Hostile("no-utf8-source", "printf '\\xff\\xfe\\x00' > calc/core.py"),
    Hostile("deep-source", "python -c \"open('calc/core.py', 'w').write('(' * 100000)\""),
    Hostile("pickled-answer", _CORE + "class P:\n    def __reduce__(self): import os; return (os._exit, (0,))\ndef add(a, b): return P()\nclass Total:\n    def put(self, x): pass\n    def value(self): return P()\nE"),
    Hostile("raises-the-end", _CORE + "def add(a, b): raise StopIteration\nclass Total:\n    def put(self, x): raise KeyboardInterrupt\n    def value(self): raise GeneratorExit\nE"),
    Hostile("skips-itself", _CORE + "import unittest\ndef add(a, b): raise unittest.SkipTest('not here')\nclass Total:\n    def __init__(self): raise unittest.SkipTest('nor here')\nE"),
]  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[EpisodeSandbox]:
    with open_sandbox() as sandbox:
        yield sandbox


async def solved(
    sandbox: EpisodeSandbox, script: str, *more: str, test_s: float = 20.0
) -> tuple[float | None, str]:
    turns = [call("bash", command=one) for one in (script, *more)]
    outcome, _ = await play(
        RepositoryEnvironment, ROW, [*turns, "done"], shared=sandbox, settings={"test_s": test_s}
    )
    assert outcome.ending in {Ending.ANSWERED, Ending.BUDGET_SPENT}, outcome
    judged = outcome.result.judgement
    return outcome.result.reward, judged.explanation if judged else ""


async def test_what_is_right_earns_the_reward(sandbox: EpisodeSandbox) -> None:
    assert await solved(sandbox, _SOUND) == (1.0, "passes 3 of 3 tests")


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda one: one.name)
async def test_a_hostile_solution_earns_nothing(sandbox: EpisodeSandbox, hostile: Hostile) -> None:
    script = (_MAIN if hostile.main else "") + hostile.script
    endless = hostile.name in {"endless-import", "fork-bomb-at-import"}
    reward, why = await solved(sandbox, script, test_s=2.0 if endless else 20.0)
    assert reward == 0.0, why


HARMLESS = [
    "strange-names",
    "conftest",
    "sitecustomize",
    "pth",
    "own-pytest-and-unittest",
    "ini-files",
    "path",
]


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_is_planted_does_not_reach_who_judges(
    sandbox: EpisodeSandbox, name: str
) -> None:
    script = next(one.script for one in HOSTILE if one.name == name)
    reward, why = await solved(sandbox, _SOUND, script)
    assert reward == 1.0, why


async def test_the_shell_never_holds_the_tests(sandbox: EpisodeSandbox) -> None:
    look = "grep -rl test_add /sandbox/run /box/ /etc /dev/shm 2>/dev/null; env; ps aux 2>/dev/null"
    _, read = await play(RepositoryEnvironment, ROW, [call("bash", command=look)], shared=sandbox)
    assert "test_add" not in read[-1]
    assert "core.py" not in read[-1]


async def test_calls_that_were_answered_by_anothers_are_done_before_the_tests(
    sandbox: EpisodeSandbox,
) -> None:
    cache = ToolCache()
    for _ in range(2):
        outcome, _ = await play(
            RepositoryEnvironment, ROW, [call("bash", command=_SOUND), "done"], shared=sandbox,
            cache=cache,
        )  # fmt: skip
        assert outcome.result.reward == 1.0
    assert cache.taken().hits == 1


async def test_guidance_comes_once_after_a_failure(sandbox: EpisodeSandbox) -> None:
    row = {**ROW, "guidance": "add() subtracts, and main.py does nothing."}
    fixing = call("bash", command=_SOUND)
    settings = {"guided": True}
    outcome, read = await play(
        RepositoryEnvironment, row, ["done", fixing, "done"], shared=sandbox, settings=settings
    )
    assert read[1] == row["guidance"]
    assert (outcome.result.reward, outcome.turns) == (1.0, 3)
    outcome, read = await play(
        RepositoryEnvironment, row, ["done", "done", "done"], shared=sandbox, settings=settings
    )
    assert (outcome.result.reward, outcome.turns) == (0.0, 2)
    outcome, read = await play(
        RepositoryEnvironment, row, [fixing, "done"], shared=sandbox, settings=settings
    )
    assert (outcome.result.reward, outcome.turns) == (1.0, 2)
    assert row["guidance"] not in read


async def test_a_guided_attempt_afresh_earns_for_itself(sandbox: EpisodeSandbox) -> None:
    """It begins with the row's files, reads the task with its guidance, and has its own reward."""
    row = {**ROW, "guidance": "add() subtracts, and main.py does nothing."}
    settings = {"guided": True, "afresh": True}
    spoil, look = call("bash", command="echo left > left.txt"), call("bash", command="ls")
    fixing = call("bash", command=_SOUND)
    outcome, read = await play(
        RepositoryEnvironment, row, [spoil, "done", look, fixing, "done"], shared=sandbox,
        settings=settings,
    )  # fmt: skip
    assert f"{row['prompt']}\n\n{row['guidance']}" in read
    assert not any("left.txt" in text for text in read)
    assert dict(outcome.rewards) == {"policy": 0.0, "guided": 1.0}
    outcome, read = await play(
        RepositoryEnvironment, row, [fixing, "done"], shared=sandbox, settings=settings
    )
    assert (outcome.result.reward, dict(outcome.rewards)) == (1.0, {})
    outcome, read = await play(
        RepositoryEnvironment, row, ["done", "done"], shared=sandbox, settings=settings
    )
    assert dict(outcome.rewards) == {"policy": 0.0, "guided": 0.0}
    with pytest.raises(ConfigError, match="set guided, too"):
        RepositoryEnvironment.Settings(afresh=True)


async def test_a_row_that_is_wrong_is_a_fault_and_no_zero(
    sandbox: EpisodeSandbox, tmp_path: Path
) -> None:
    wrong = [
        {"tests": []},
        {"tests": "no json"},
        {"tests": ["no table"]},
        {"tests": [{"run": "main.py", "stdout": None}]},
        {"files": ["main.py"]},
        {"tests": [{"code": "def test(:"}]},
        {"tests": [{"code": "def test_one(): assert 1 == 1"}]},
        {"tests": [{"run": "main.py"}]},
        {"files": {"../out": "x"}},
        {"folder": str(tmp_path / "none")},
        {"tar": b"no archive"},
    ]
    for change in wrong:
        outcome, _ = await play(RepositoryEnvironment, {**ROW, **change}, ["x"], shared=sandbox)
        assert outcome.ending is Ending.FAULT, change
        assert outcome.result.fault is not None
        assert outcome.result.fault.reason == "MALFORMED_ROW", change


def test_rows_are_kept_whose_solution_proves_their_tests(
    sandbox: EpisodeSandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(RepositoryEnvironment, "open", lambda _: nullcontext(sandbox))
    row = {
        "prompt": "?",
        "files": {"calc.py": "def add(a, b):\n    return a - b\n"},
        "tests": [{"code": "from calc import add\nassert add(2, 2) == 4\n"}],
        "solution": {"calc.py": "def add(a, b):\n    return a + b\n"},
    }
    rows = [
        row,
        {**row, "solution": None},
        {**row, "solution": {"calc.py": "def add(a, b):\n    return 5\n"}},
        {**row, "files": row["solution"]},
        {
            **row,
            "tests": [{"code": "import nowhere as n\nfrom calc import add\n", "modules": ["calc"]}],
        },
    ]
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join([*map(json.dumps, rows), "no json"]))
    assert repository.main(str(file)) == 0
    told = capsys.readouterr()
    assert [json.loads(line) for line in told.out.splitlines()] == [row]
    whys = told.err.splitlines()
    assert [why.partition(":")[0] for why in whys] == [f"row {n}" for n in (2, 3, 4, 5, 6)]
    assert "no `solution`" in whys[0]
    assert "its solution must earn 1: passes 0 of 1" in whys[1]
    assert "who does nothing must earn 0" in whys[2]
    assert "INVALID_TEST" in whys[3]


async def test_columns_of_a_table_are_read(sandbox: EpisodeSandbox) -> None:
    nothing = dict.fromkeys(("code", "run", "stdout", "files", "arguments", "modules"))
    tests = [{**nothing, **test} for test in ROW["tests"]]  # type: ignore[dict-item]
    files = json.dumps({**ROW["files"], "of/another/row": None})  # type: ignore[dict-item]
    for row in ({**ROW, "tests": json.dumps(tests), "files": files}, {**ROW, "tests": tests}):
        turns = [call("bash", command=f"{_SOUND}; ls"), "done"]
        outcome, read = await play(RepositoryEnvironment, row, turns, shared=sandbox)
        assert outcome.result.reward == 1.0
        assert "of" not in read[1].split()


async def test_fractions_are_paid_where_they_are_wanted(sandbox: EpisodeSandbox) -> None:
    outcome, _ = await play(
        RepositoryEnvironment, ROW, [call("bash", command=_MAIN), "done"], shared=sandbox,
        settings={"scoring": "fraction"},
    )  # fmt: skip
    assert outcome.result.reward == pytest.approx(2 / 3)
    assert outcome.result.judgement is not None
    assert outcome.result.judgement.verdict == "incorrect"
