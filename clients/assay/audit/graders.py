"""The edges of an audit: who is asked, over which wire.

A function or object of Python is served by a reward server of ours that is started for the audit:
what it raises is a fault, and it is killed where it hangs. A verifier is asked where it is served.
OpenRLHF's and NeMo Gym's URLs are asked in their own forms.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from assay.audit.probes import AuditRow, Execute, Probe, Ruling, Scale
from assay.audit.running import Ask
from assay.audit.sources import GraderSource, module_file, read_source
from assay.clients.execution import (
    Execution,
    ExecutionClient,
    ExecutionJob,
    Limits,
    Program,
)
from assay.clients.reward import RewardClient
from assay.clients.rows.items import Defaults, Keys, RowError, item_of
from assay.clients.services import (
    ASKED_SERVICES,
    EmbeddedServices,
    installed_services,
    who_brings,
)
from assay.clients.types import Data, Item, Result, VerifierInfo
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.tls import ClientTls

if TYPE_CHECKING:
    import httpx2

_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)")
_MODULE = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.\w+)*):(?P<name>[A-Za-z_][\w.]*)")

_SERVED = "audited"
_ITEM_TIMEOUT_S = 3.0
_WORKER_MB = "16384"
_PROGRAM_TIMEOUT_S = 30.0
_COMPARE_S = 20.0
_HTTP_TIMEOUT_S = 30.0
_HTTP_AT_ONCE = 8
_OWN_KEYS = {"id", "prompt", "response", "right", "wrong", "verifier", "task", "params", "labels"}
_KEYS = Keys(verifier="", task="")


@dataclass(frozen=True, slots=True)
class AuditTarget:
    """Whom a text names.

    Attributes:
        kind: "verifier", "file", "module", "openrlhf" or "nemo-gym".
        place: the verifier's name, the file, the module, or the URL.
        name: of the function or object; empty for others.
        source: what its file says.
    """

    kind: str
    place: str
    name: str = ""
    source: GraderSource = field(default_factory=GraderSource)


def read_target(text: str) -> AuditTarget:
    """Whom a command line names.

    Raises:
        ConfigError: nobody, or a file or module that is not there.
    """
    if "://" in text:
        found = re.fullmatch(r"https?://.+?(/get_reward|/verify)/?(\?.*)?", text)
        if found is None:
            raise ConfigError(
                f"{text} is neither OpenRLHF's (it ends in /get_reward) nor NeMo Gym's (/verify)"
            )
        kind = "openrlhf" if found[1] == "/get_reward" else "nemo-gym"
        return AuditTarget(kind, text)
    if found := _FILE.fullmatch(text):
        path = Path(found["path"])
        if not path.is_file():
            raise ConfigError(f"there is no file {path}; correct the path")
        return AuditTarget("file", str(path), found["name"], read_source(path, found["name"]))
    if found := _MODULE.fullmatch(text):
        source = read_source(module_file(found["module"]), found["name"])
        return AuditTarget("module", found["module"], found["name"], source)
    if text.endswith(".py"):
        raise ConfigError(f"{text} names no function; write {text}:FUNCTION")
    return AuditTarget("verifier", text)


@dataclass(frozen=True, slots=True)
class ServerAt:
    """A reward server that runs; an empty target for one that is started."""

    target: str = ""
    token: str | None = None
    tls: ClientTls | None = None


@dataclass(frozen=True, slots=True)
class Reachable:
    """Somebody who can be asked.

    Attributes:
        ask: says what is said of probes.
        scale: which rewards accept, where the range is declared as 0 to 1.
        version: of a verifier; empty where there is none.
        execute: runs programs of Python. None: no sandbox was started.
    """

    ask: Ask
    scale: Scale | None = None
    version: str = ""
    execute: Execute | None = None


@contextmanager
def reached(
    target: AuditTarget,
    rows: Sequence[AuditRow],
    server: ServerAt,
    *,
    parameters: Mapping[str, Any] | None = None,
    share: float = 0.5,
    timeout_s: float = 600.0,
) -> Iterator[Reachable]:
    """Whoever the target names, for as long as the context.

    Raises:
        ConfigError: it cannot be had here, or a row is none for it.
        StartupError: a server did not start.
        CallError: a server does not answer.
    """
    if target.kind == "openrlhf":
        import httpx2  # noqa: PLC0415 - the extra `audit`

        with (
            ThreadPoolExecutor(_HTTP_AT_ONCE, "assay-audit") as threads,
            httpx2.Client(timeout=_HTTP_TIMEOUT_S, trust_env=False) as http,
        ):
            yield Reachable(_openrlhf(target.place, rows, threads, http))
        return
    with ExitStack() as stack:
        name, arguments = target.place, []
        if target.kind != "verifier":
            if server.target:
                raise ConfigError(f"{target.place} is run here; leave --target out")
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-audit-")))
            name, arguments = _SERVED, ["--verifier", _spec(target, folder)]
        execute = None
        names = _needed(rows, name, [] if server.target else ["reward"])
        if names:
            services = stack.enter_context(_services(names, arguments))
            if "sandbox" in names:
                execute = _executing(services.address_of("sandbox"), stack)
            if not server.target:
                server = ServerAt(services.address)
        client = stack.enter_context(
            RewardClient(server.target, tls=server.tls, token=server.token, timeout_s=timeout_s)
        )
        info = _found(client, name)
        items = _items(target, rows, name, parameters or {})
        # A wider range is what parameters allow, and not what a right answer gets.
        scale = Scale(share=share) if (info.min_reward, info.max_reward) == (0, 1) else None
        yield Reachable(_served(client, items), scale, info.version, execute)


def _needed(rows: Sequence[AuditRow], verifier: str, names: list[str]) -> list[str]:
    """The services to start: a sandbox, too, for a verifier or tests that need it."""
    asked = bool(names) and ASKED_SERVICES.get(verifier) == "sandbox"
    wanted = asked or any(row.tests is not None for row in rows)
    return ["sandbox", *names] if wanted and "sandbox" in installed_services() else names


def _services(names: list[str], arguments: list[str]) -> EmbeddedServices:
    workers = str(max(1, min(2, len(os.sched_getaffinity(0)))))
    more = ["--cache-entries", "0", "--workers", workers, "--item-timeout-s", str(_ITEM_TIMEOUT_S)]
    more += ["--worker-memory-mb", _WORKER_MB]
    if "sandbox" in names:
        more += ["--item-timeout-s", str(_PROGRAM_TIMEOUT_S)]
    return EmbeddedServices(names, arguments={"reward": [*arguments, *more]})


def _executing(address: str, stack: ExitStack) -> Execute:
    client = stack.enter_context(ExecutionClient(address))

    def execute(programs: Sequence[str]) -> list[str | None]:
        limits = Limits(wall_time_s=_COMPARE_S, cpu_time_s=_COMPARE_S)
        jobs = [
            ExecutionJob(Program("python", text), str(number), limits=limits)
            for number, text in enumerate(programs)
        ]
        ended = client.execute(jobs) if jobs else []
        return [one.stdout.text if isinstance(one, Execution) and one.ok else None for one in ended]

    return execute


def _found(client: RewardClient, name: str) -> VerifierInfo:
    info = client.list_verifiers()
    found = info.find(name)
    if found is None:
        near = did_you_mean(name, (one.name for one in info.verifiers))
        raise ConfigError(
            f"no verifier is called {name!r}{near}; a function of yours is FILE.py:FUNCTION or "
            f"package.module:function{who_brings(name)}"
        )
    return found


def _spec(target: AuditTarget, folder: Path) -> str:
    """What --verifier says: the function itself, or a file that hosts it."""
    names = target.source.parameters
    known = names[:1] == ("response",) or "solution_str" in names
    if target.kind == "file" and (known or len(names) < 2):
        return f"{_SERVED}={Path(target.place).absolute()}:{target.name}"
    if target.kind == "file":
        path = Path(target.place).absolute()
        lines = [
            "import importlib.util, sys",
            "from assay.audit.hosted import hosted_of",
            f"sys.path.append({str(path.parent)!r})",
            f"spec = importlib.util.spec_from_file_location('assay_audited', {str(path)!r})",
            "module = sys.modules['assay_audited'] = importlib.util.module_from_spec(spec)",
            "spec.loader.exec_module(module)",
            f"audited = hosted_of(module.{target.name})",
        ]
    elif target.kind == "module":
        lines = [
            "import sys",
            f"sys.path.append({str(Path.cwd())!r})",
            "import importlib",
            "from assay.audit.hosted import hosted_of",
            f"audited = hosted_of(importlib.import_module({target.place!r}).{target.name})",
        ]
    else:
        url = re.sub(r"/verify/?$", "", target.place)
        lines = [
            "from assay.environments.hosting import host_nemo_gym",
            f"audited = host_nemo_gym({url!r})",
        ]
    shim = folder / "audited.py"
    shim.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return f"{_SERVED}={shim}:audited"


def _items(
    target: AuditTarget, rows: Sequence[AuditRow], name: str, parameters: Mapping[str, Any]
) -> list[Item]:
    """An item of each row, without a response.

    Raises:
        ConfigError: a row is none.
    """
    items = []
    for row in rows:
        data = dict(row.data)
        reference = data.get("reference")
        scalar = isinstance(reference, int | float)  # so is a bool
        if scalar:
            data["reference"] = str(reference)
        try:
            item = item_of(_KEYS, Defaults(name, params=parameters), data, row.id, lambda _: "")
        except RowError as error:
            raise ConfigError(f"row {row.id}: {error}") from error
        if target.kind != "verifier" and (columns := _columns(target, row, data)) is not None:
            item = dataclasses.replace(item, reference=Data(columns))
        elif target.kind != "verifier" and scalar:
            item = dataclasses.replace(item, reference=Data(reference))
        items.append(item)
    return items


def _columns(target: AuditTarget, row: AuditRow, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row's columns, for a target that takes several; None where its reference will do."""
    own = {key: value for key, value in data.items() if key not in _OWN_KEYS}
    if target.kind == "nemo-gym":
        return {"expected_answer": row.truth.text, **own}
    given = {"prompts", "completions", "prompt", "completion"}
    wanted = [name for name in target.source.required if name not in given]
    if "completions" in target.source.parameters and wanted and set(wanted) <= set(own):
        return {**own, "reference": data.get("reference")}
    return None


def _served(client: RewardClient, items: Sequence[Item]) -> Ask:
    def ask(probes: Sequence[Probe]) -> list[Ruling]:
        asked = [
            dataclasses.replace(items[probe.row], response=probe.response, id=str(number))
            for number, probe in enumerate(probes)
        ]
        return [_said(result) for result in client.score(asked)]

    return ask


def _said(result: Result) -> Ruling:
    fault = result.fault
    if fault is not None:
        return Ruling(None, fault.reason, fault.message)
    return Ruling(result.reward)


def _openrlhf(
    url: str, rows: Sequence[AuditRow], threads: ThreadPoolExecutor, http: httpx2.Client
) -> Ask:
    """Asks POST /get_reward, one query a call: a call has one status for all of its queries."""
    import httpx2  # noqa: PLC0415 - the extra `audit`

    def one(probe: Probe) -> Ruling:
        row = rows[probe.row]
        body = {
            "query": [f"{row.prompt}{probe.response}"],
            "prompts": [row.prompt],
            "labels": [row.data.get("reference")],
        }
        try:
            answer = http.post(url, json=body)
            answer.raise_for_status()
            found = answer.json()
        except (httpx2.HTTPError, ValueError) as error:
            return Ruling(None, "UNREACHABLE", f"{type(error).__name__}: {error}")
        return _first_reward(found)

    def ask(probes: Sequence[Probe]) -> list[Ruling]:
        return list(threads.map(one, probes))

    return ask


def _first_reward(found: Any) -> Ruling:
    rewards = found.get("rewards") if isinstance(found, dict) else None
    reward = rewards[0] if isinstance(rewards, list) and len(rewards) == 1 else None
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not math.isfinite(reward):
        return Ruling(None, "MALFORMED_RESPONSE", "the answer has no list `rewards` of one number")
    return Ruling(float(reward))
