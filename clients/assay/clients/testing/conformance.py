"""The conformance kit: checks, over the real wire, the properties that every verifier must have.

    report = check_verifier("my-verifier", [Case("4", "4", "correct"), Case("5", "4", "incorrect")])
    report.raise_for_failures()

Checked: the description (names, range, verdicts, parameters and their defaults); every case's
verdict, and that its judgement is sound; determinism where it is claimed, one by one and shuffled
in a batch; a missing or blank reference is a fault; an unknown or wrong parameter is the fault
INVALID_PARAMETER; hostile responses get a judgement or a fault with a reason, in time; the server
lives on. Not checked: the verdicts of other items, and anything that needs a group.
"""

from __future__ import annotations

import dataclasses
import random
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from assay.clients.config import ClientConfig, RetryPolicy
from assay.clients.reward import RewardClient
from assay.clients.services import EmbeddedServices
from assay.clients.testing.cases import OURS, Case, Kit, clip, outcome_text
from assay.clients.testing.hostile import hostile_texts
from assay.clients.testing.report import Report
from assay.clients.testing.soundness import check_judgement, check_spec
from assay.clients.testing.wrong_items import check_parameters, check_references
from assay.clients.types import Result
from assay.kit.errors import CallError, StartupError
from assay.kit.hints import did_you_mean
from assay.kit.tls import ClientTls

_SEED = 20_240_607
_START_S = 60.0
# The last line of a traceback.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception)\b")


def check_verifier(
    name: str,
    cases: Sequence[Case] = (),
    *,
    target: str = "",
    tls: ClientTls | None = None,
    token: str | None = None,
    arguments: Sequence[str] = (),
    additive: bool | None = None,
    item_timeout_s: float = 10.0,
    hostile_chars: int = 2**20,
) -> Report:
    """Checks one verifier on a server; without `cases` little can be checked.

    Without a target the server installed here is started with `arguments`, and without a cache,
    which would hide a lack of determinism. `additive` says that the reward is the sum of weight
    times score; None: unless it is a profile. `item_timeout_s` limits one judgement;
    `hostile_chars` is the approximate length of long hostile responses.

    Raises:
        ConfigError: No target is given and no reward server is installed.
    """
    report = Report(name)
    logs: Path | None = None
    with ExitStack() as stack:
        if not target:
            logs = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-check-")))
            services = EmbeddedServices(
                ["reward"],
                arguments={"reward": ["--cache-entries", "0", *arguments]},
                log_dir=logs,
                start_timeout_s=_START_S,
            )
            try:
                stack.enter_context(services)
            except StartupError as error:
                report.add("serving", "the server starts with it", str(error))
                return report
            target = services.address
        client = stack.enter_context(
            RewardClient(
                target,
                tls=tls,
                token=token,
                timeout_s=30.0 + 4 * item_timeout_s,
                config=ClientConfig(retry=RetryPolicy(max_attempts=2)),
            )
        )
        try:
            _check(client, report, cases, additive, item_timeout_s, hostile_chars)
        except CallError as error:
            report.add("serving", "the server answers", str(error))
        if logs is not None and not report.version:
            report.notes += _why_left_out(logs)
    return report


def _why_left_out(logs: Path) -> Iterator[str]:
    """The plug-ins that the server could not load, from its processes' logs."""
    lines = (logs / "reward.err").read_text(errors="replace").splitlines()
    said = (line.partition(": ")[2] if "left out" in line else line for line in lines)
    for line in dict.fromkeys(said):
        if "left out" in line or _EXCEPTION.match(line):
            yield clip(line, 300)


def _check(  # noqa: PLR0917  # one caller; each is a different thing
    client: RewardClient,
    report: Report,
    cases: Sequence[Case],
    additive: bool | None,
    item_timeout_s: float,
    hostile_chars: int,
) -> None:
    server = client.list_verifiers()
    info = server.find(report.verifier)
    names = [verifier.name for verifier in server.verifiers]
    near = did_you_mean(report.verifier, names).removeprefix("; ")
    others = f"the server has: {', '.join(names)}"
    problem = "" if info else "; ".join(filter(None, (near, others)))
    report.add("serving", "the server has it", problem)
    if info is None:
        return
    report.version = info.version
    for what, problem in check_spec(info, server):
        report.add("spec", what, problem)
    sums = additive if additive is not None else not info.is_profile
    kit = Kit(client, info, tuple(cases), report, sums, item_timeout_s)
    if info.needs_group:
        report.notes.append("it judges groups, which this kit does not send: no item was judged")
        return
    if not cases:
        report.notes.append("no cases were given: pass some, at least one for each verdict")
    results = _check_cases(kit)
    _check_determinism(kit, results)
    check_references(kit)
    check_parameters(kit)
    _check_hostile(kit, hostile_chars)
    _check_alive(kit)


def _check_cases(kit: Kit) -> list[Result]:
    results = kit.score([case.item(kit.info.name) for case in kit.cases])
    for number, (case, result) in enumerate(zip(kit.cases, results, strict=True), start=1):
        what = f"case {number}, {clip(case.name or case.response)!r}, is {case.wanted}"
        kit.report.add("cases", what, _case_problem(kit, case, result))
    seen = {case.verdict for case in kit.cases}
    unseen = [verdict for verdict in kit.info.verdicts if verdict not in seen]
    if kit.cases and unseen:
        kit.report.notes.append(f"no case has the verdict {', '.join(unseen)}")
    return results


def _case_problem(kit: Kit, case: Case, result: Result) -> str:
    if result.fault is not None:
        return "" if case.fault == result.fault.reason else outcome_text(result)
    judgement = result.judgement
    if case.fault or judgement is None:
        return outcome_text(result)
    if case.verdict and judgement.verdict != case.verdict:
        return outcome_text(result)
    if case.reward is not None and abs(judgement.reward - case.reward) > 1e-9:
        return f"the reward is {judgement.reward:g}, not {case.reward:g}"
    return check_judgement(kit.info, judgement, additive=kit.additive)


def _check_determinism(kit: Kit, first: Sequence[Result]) -> None:
    if not kit.info.deterministic or not kit.cases:
        return
    items = [case.item(kit.info.name) for case in kit.cases]
    again = [kit.score([item])[0] for item in items]
    kit.report.add("determinism", "one by one the judgements are equal", _difference(first, again))
    order = list(range(len(items))) * 2
    random.Random(_SEED).shuffle(order)  # noqa: S311  # an order, not a secret
    shuffled = kit.score([items[index] for index in order])
    expected = [first[index] for index in order]
    what = "shuffled in a batch, twice each, they are equal"
    kit.report.add("determinism", what, _difference(expected, shuffled))
    if any(result.from_cache for result in again):
        kit.report.notes.append("some judgements came from the cache, which proves little")


def _difference(one: Sequence[Result], other: Sequence[Result]) -> str:
    for a, b in zip(one, other, strict=True):
        same_fault = a.fault and b.fault and a.fault.reason == b.fault.reason
        if not same_fault and a.outcome != b.outcome:
            return f"{outcome_text(a)}, and then {outcome_text(b)}"
    return ""


def _check_hostile(kit: Kit, chars: int) -> None:
    example = next((case for case in kit.cases if not case.fault), Case("4", "4"))
    slowest_s, slowest = 0.0, ""
    for name, text in hostile_texts(chars).items():
        item = dataclasses.replace(example, response=text, turns=())
        result = kit.score([item.item(kit.info.name)])[0]
        problem = ""
        if result.fault is not None and result.fault.reason in OURS:
            problem = outcome_text(result)
        elif result.judgement is not None:
            problem = check_judgement(kit.info, result.judgement, additive=kit.additive)
            if not problem and result.execution_s > kit.item_timeout_s:
                problem = f"it took {result.execution_s:.1f} s"
        kit.report.add("hostile", name, problem)
        if result.execution_s > slowest_s:
            slowest_s, slowest = result.execution_s, name
    if slowest:
        kit.report.notes.append(
            f"the slowest hostile response was {slowest!r}: {1e3 * slowest_s:.1f} ms"
        )


def _check_alive(kit: Kit) -> None:
    served = kit.client.list_verifiers().find(kit.info.name)
    problem = "" if served == kit.info else "it is no longer served, or described otherwise"
    if not problem and kit.cases:
        case = kit.cases[0]
        problem = _case_problem(kit, case, kit.score([case.item(kit.info.name)])[0])
    kit.report.add("serving", "the server lives on and judges as before", problem)
