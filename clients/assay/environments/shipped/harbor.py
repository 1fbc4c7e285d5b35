"""`harbor`: tasks in Harbor's format, in a shell; tests/test.sh pays what it writes.

    python -m assay.environments.shipped.harbor FOLDER > rows.jsonl

proves each task below FOLDER: its oracle earns 1, doing nothing 0. Why others cannot run goes to
stderr. The tests run in a fresh session that holds the policy's files and nothing else of it.

Limit: a script writes the verdict beside the policy's program, which can forge it where the tests
run it, here as in Harbor; `repository` cannot be forged so.
"""

from __future__ import annotations

import base64
import io
import json
import math
import secrets
import shlex
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.clients.faults import make_fault
from assay.clients.sessions import CellEnd
from assay.clients.sessions.folders import read_folder
from assay.clients.types import Component, Fault, Judgement
from assay.environments.cells import OF_FILES, CellBounds, EpisodeSession, is_path
from assay.environments.environment import BudgetSpent, EpisodeFault, Proof, Row, ToolError
from assay.environments.selftest import prove
from assay.environments.shipped.harbor_tasks import (
    LOGS,
    SOLUTION,
    TESTS,
    HarborTask,
    TaskRefused,
    read_task,
)
from assay.environments.shipped.python import ProgramSettings
from assay.environments.shipped.shell import ShellEnvironment
from assay.environments.types import ToolCall
from assay.kit.errors import CallError, ConfigError
from assay.kit.reasons import Reason

_SHIMS = "/tmp/shims"  # noqa: S108  # in the session
_MOST_TESTS_S = 300.0
_HOME = "/tmp/home"  # noqa: S108  # in the session
# What a script says to have tools that are here already, or that no script can have here.
_SHIM = {
    "pytest": 'args=()\nwhile [ $# -gt 0 ]; do case "$1" in --ctrf|--json-ctrf) shift;; '
    '--ctrf=*|--json-ctrf=*) ;; *) args+=("$1");; esac; shift; done\n'
    'exec python -m pytest "${args[@]}"',
    "uvx": 'while [ $# -gt 0 ] && [ "$1" != pytest ]; do shift; done; shift\n'
    'exec "$(dirname "$0")/pytest" "$@"',
    "uv": '[ "$1" = run ] || exit 0; exec "$(dirname "$0")/uvx" "$@"',
    **dict.fromkeys(("apt-get", "apt", "curl", "wget", "sudo", "pip", "pip3"), "exit 0"),
}


@dataclass(frozen=True, slots=True)
class HarborSettings(ProgramSettings):
    """Of `harbor`.

    Attributes:
        folder: where the rows' `task` folders are.
        prove: tasks of the folder that are proved before a run; the first by name.
        workspace_mb: of the files that are tested; more is a failure.
    """

    folder: str = ""
    prove: int = 3
    cell_s: float = 60.0
    workspace_mb: int = 32


class HarborEnvironment(ShellEnvironment):
    """A task of Harbor's in a shell; a row names its folder (`task`) or holds it (`task_files`)."""

    name = "harbor"
    needs = ("task|task_files",)
    Settings = HarborSettings
    state_read_by = "all"
    _task: HarborTask

    async def reset(self, row: Row) -> Any:
        """The task's instruction."""
        try:
            self._task = read_task(_files_of(row, self.settings.folder))
        except ConfigError as error:
            text = f"the task {row.get('task', '')}: {error}"
            raise EpisodeFault(make_fault(Reason.MALFORMED_ROW, text[:900])) from error
        await super().reset({**row, "prompt": ""})
        assert self.session is not None  # noqa: S101  # made by the line above
        begin = [_exports(self._task.env), *self._task.commands]
        if any(begin):
            result = await self.session.run("\n".join(begin))
            if not result.ok:
                text = f"what the image's build does failed: {result.stderr.text[-300:]}"
                raise EpisodeFault(make_fault(Reason.ENVIRONMENT_FAILED, text))
        return self._task.instruction

    def files(self, row: Row) -> Mapping[str, bytes | str]:
        """The task's."""
        return {**self.settings.files, **self._task.files}

    async def reward(self) -> Any:
        """Runs the task's tests on the files that the policy left, in a fresh session."""
        assert self.session is not None  # noqa: S101  # made by reset
        most = self.settings.workspace_mb * 2**20
        files, modes = await self.session.files(most, is_path), await self.session.modes()
        if files is None:
            return _judgement(0.0, f"the working folder has more than {most} bytes")
        judged = await self._tested(files, modes)
        if isinstance(judged, Fault):
            before = await self._tested(self._task.files, {})
            if isinstance(before, Judgement):
                return _judgement(0.0, f"its files end the tests: {judged.message}")
        return judged

    async def _tested(
        self, files: Mapping[str, bytes], modes: Mapping[str, int]
    ) -> Judgement | Fault:
        wall_s = min(self._task.verifier_s, _MOST_TESTS_S)
        usual = self.settings.bounds()
        bounds = CellBounds(usual.limits_for(wall_s), wall_s, 2000, 0, usual.wait_s)
        session = EpisodeSession(self.shared, "bash", bounds)
        put = f"tests-{secrets.token_hex(8)}"  # no name that the policy's files could have
        tests = {f"{put}/{path}": content for path, content in self._task.tests.items()}
        try:
            session.put({**files, **tests})
            await session.run(_prepare(self._task, put, modes))
            result = await session.run(f"cd /box && bash {TESTS}/test.sh")
            if result.end is CellEnd.WALL_TIME_LIMIT:
                return _broken(f"the tests took more than {wall_s:g} s")
            told = await session.run(
                f"for f in {LOGS}/verifier/reward.txt {LOGS}/verifier/reward.json; do "
                'if [ -f "$f" ]; then head -c 4000 "$f"; exit 0; fi; done'
            )
            said = result.stdout.text[-300:] + result.stderr.text[-300:]
            return _paid(told.stdout.text, said)
        except (ToolError, BudgetSpent) as error:
            return _broken(str(error))
        except CallError as error:
            if error.reason not in OF_FILES:
                raise
            return _broken(str(error))
        finally:
            await session.close()

    @classmethod
    def proofs(cls, settings: Any) -> Sequence[Proof]:
        """A task of ours, and of the folder's first ones the oracle and doing nothing."""
        found = [
            *_proofs_of({"task_files": _OURS}, read_task(_files_of({"task_files": _OURS}, "")))
        ]
        if settings.folder and settings.prove:
            for name, task in list(_tasks(settings.folder))[: settings.prove]:
                if isinstance(task, HarborTask):
                    found += _proofs_of({"task": name}, task)
        return found


def _proofs_of(row: Row, task: HarborTask) -> Iterator[Proof]:
    if not task.solution:
        return
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as packed:
        for path, content in task.solution.items():
            member = tarfile.TarInfo(path)
            member.size, member.mode = len(content), 0o755
            packed.addfile(member, io.BytesIO(content))
    text = base64.b64encode(archive.getvalue()).decode()
    solve = (
        f"mkdir -p {SOLUTION} && base64 -d <<'E' | tar xzf - -C {SOLUTION}\n{text}\nE\n"
        f"cd /box && bash {SOLUTION}/solve.sh"
    )
    yield Proof(row, (ToolCall("bash", {"command": solve}), "done"), 1.0)
    yield Proof(row, ("done",), 0.0)


def _tasks(folder: str) -> Iterator[tuple[str, HarborTask | TaskRefused]]:
    """The tasks below a folder by path, sorted; in a refused one's place, why."""
    root = Path(folder)
    if not root.is_dir():
        raise ConfigError(f"{folder} is no folder of tasks")
    for found in sorted(root.rglob("task.toml")):
        name = found.parent.relative_to(root).as_posix()
        try:
            yield name, read_task(read_folder(found.parent))
        except TaskRefused as error:
            yield name, error


def _files_of(row: Row, folder: str) -> Mapping[str, bytes]:
    if row.get("task_files"):
        return {
            path: content if isinstance(content, bytes) else str(content).encode()
            for path, content in row["task_files"].items()
            if content is not None
        }
    if not row.get("task"):
        raise ConfigError("a row needs `task`, a task's folder")
    return read_folder(Path(folder, str(row["task"])))


def _prepare(task: HarborTask, put: str, modes: Mapping[str, int]) -> str:
    """Lays out tests, rights, and what scripts ask for that is here already.

    Python reads nothing of the policy's folder by itself: neither its site packages nor modules
    that are called as the tests' are. Its home is another folder, unless the tests look into it.
    """
    lines = [f"mkdir -p {TESTS} {LOGS}/verifier {LOGS}/agent {LOGS}/artifacts {_SHIMS}"]
    lines.append(f"cp -r /box/{put}/. {TESTS}/ && rm -rf /box/{put}")
    lines += [f"chmod {mode:o} {shlex.quote(f'/box/{path}')}" for path, mode in modes.items()]
    for name, text in _SHIM.items():
        lines.append(f"cat > {_SHIMS}/{name} <<'SHIM'\n#!/bin/bash\n{text}\nSHIM")
    home = "/box" if task.tests_at_home else _HOME
    lines.append(f"mkdir -p {home}/.local/bin; rm -rf {home}/.local/bin/env")
    lines.append(f": > {home}/.local/bin/env; chmod +x {_SHIMS}/*; export HOME={home}")
    lines.append(f"export PATH={_SHIMS}:$PATH PYTHONSAFEPATH=1 PYTHONNOUSERSITE=1")
    return "\n".join([*lines, _exports({**task.env, **task.tests_env})])


def _exports(env: Mapping[str, str]) -> str:
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in env.items())


def _paid(told: str, said: str) -> Judgement | Fault:
    """The reward that the tests wrote: a number, or JSON with `reward` or one number."""
    try:
        value: Any = json.loads(told)
        if isinstance(value, dict):
            value = value["reward"] if "reward" in value else dict([next(iter(value.items()))])
            value = next(iter(value.values())) if isinstance(value, dict) else value
        number = float(value)
    except (ValueError, TypeError, LookupError, StopIteration):
        return _broken(f"the tests wrote no reward ({told[:100]!r}); they said: {said}")
    if not math.isfinite(number):
        return _broken(f"the tests wrote the reward {told[:40]!r}")
    return _judgement(number, f"the tests wrote {number:g}; they said: {said}")


def _judgement(reward: float, text: str) -> Judgement:
    verdict = "correct" if reward >= 1 else "incorrect"
    parts = (Component("reward", reward),)
    return Judgement(reward, verdict, parts, explanation=" ".join(text.split())[:900])


def _broken(text: str) -> Fault:
    return make_fault(Reason.INVALID_TEST, " ".join(text.split())[:900])


_OURS = {
    "task.toml": 'schema_version = "1.1"\n[verifier]\ntimeout_sec = 60.0\n',
    "instruction.md": "Write the sum of the numbers in /app/numbers.txt into /app/sum.txt.\n",
    "environment/Dockerfile": "FROM python:3.12-slim\nWORKDIR /app\nCOPY numbers.txt .\n",
    "environment/numbers.txt": "1\n2\n39\n",
    "tests/test.sh": "mkdir -p /logs/verifier\n"
    'if [ "$(cat /app/sum.txt)" = 42 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n',
    "solution/solve.sh": "awk '{ n += $1 } END { print n }' /app/numbers.txt > /app/sum.txt\n",
}


def main(folder: str) -> int:
    """Writes a row for each task that can run; 1 where there is none."""
    rows = 0
    with HarborEnvironment.open(HarborSettings()) as sandbox:
        for name, task in _tasks(folder):
            why = str(task) if isinstance(task, TaskRefused) else ""
            if isinstance(task, HarborTask):
                why = _why_not(name, folder, task, sandbox)
            if why:
                print(f"{name}: {why}", file=sys.stderr)
                continue
            rows += 1
            instruction = task.instruction if isinstance(task, HarborTask) else ""
            print(json.dumps({"task": name, "prompt": instruction}))
    return 0 if rows else 1


def _why_not(name: str, folder: str, task: HarborTask, sandbox: Any) -> str:
    """Why a task cannot run here; empty where its oracle earns 1 and doing nothing less."""
    if not task.solution:
        return "it has no solution, so nothing shows that it can run here"
    proofs = list(_proofs_of({"task": name}, task))
    settings = HarborSettings(folder=folder)
    results = prove(HarborEnvironment, settings, None, sandbox, proofs=proofs)
    failed = [one for one in results if not one.ok]
    if not failed:
        return ""
    who = "its oracle" if failed[0].number == 1 else "who does nothing"
    extra = f"; not installed here: {'; '.join(task.installs)}" if task.installs else ""
    found = failed[0].outcome.result
    detail = found.judgement.explanation if found.judgement else failed[0].found
    return f"{who} must earn {failed[0].proof.reward:g}, {detail[:400]}{extra}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m assay.environments.shipped.harbor FOLDER")
    try:
        sys.exit(main(sys.argv[1]))
    except (ConfigError, OSError) as error:
        sys.exit(str(error))
