"""Wrong items: without a usable reference, or with parameters that no verifier takes.

Each must be a fault with the right reason: a judgement would be a made-up number that trains.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from assay.api.execution.v1 import execution_pb2
from assay.clients.testing.cases import OURS, Case, Kit, clip, outcome_text
from assay.clients.types import Anchor, Data, Parameter, ParameterInfo, Reference, Result, is_texts
from assay.kit.reasons import Reason

_BLANKS = {"an empty reference": "", "a blank reference": " \n\t\u3000"}
_UNKNOWN = "no_such_parameter"
# Models round otherwise when they read a text anew, or beside others.
_ROUNDING = 1e-4


def check_references(kit: Kit) -> None:
    """A reference that is absent or blank is a fault, never a judgement."""
    case = next((case for case in kit.cases if case.reference is not None and not case.fault), None)
    if not kit.info.needs_reference:
        return
    if case is None:
        kit.report.notes.append("no case has a reference: blank references were not tried")
        return
    without = dataclasses.replace(case, reference=None)
    _expect(kit, "a missing reference is a fault", without, Reason.MISSING_REFERENCE)
    for name, text in _BLANKS.items():
        _expect(kit, f"{name} is a fault", dataclasses.replace(case, reference=text))
    if is_texts(case.reference) or isinstance(case.reference, str):
        blank_list = dataclasses.replace(case, reference=[" "])
        _expect(kit, "a list of a blank reference is a fault", blank_list)
    other_kinds: dict[str, Reference] = {
        "tests": execution_pb2.TestSuite(),
        "an anchor": Anchor(" "),
        "null as data": Data(None),
    }
    for name, reference in other_kinds.items():
        what = f"{name} as reference is a fault or is judged soundly"
        _expect_sound(kit, what, dataclasses.replace(case, reference=reference))


def check_parameters(kit: Kit) -> None:
    """Defaults are accepted; an unknown name or a wrong value is INVALID_PARAMETER."""
    case = next((case for case in kit.cases if not case.fault), None)
    if case is None:
        return
    given = {**case.parameters, _UNKNOWN: 1}
    unknown = dataclasses.replace(case, parameters=given)
    _expect(kit, "an unknown parameter is a fault", unknown, Reason.INVALID_PARAMETER)
    for parameter in kit.info.parameters:
        if parameter.default is not None and parameter.name not in case.parameters:
            _check_default(kit, case, parameter, parameter.default)
        for value in _wrong_values(parameter):
            given = {**case.parameters, parameter.name: value}
            wrong = dataclasses.replace(case, parameters=given)
            what = f"{parameter.name} = {clip(repr(value))} is a fault"
            _expect(kit, what, wrong, Reason.INVALID_PARAMETER)


def _check_default(kit: Kit, case: Case, parameter: ParameterInfo, default: Parameter) -> None:
    said = dataclasses.replace(case, parameters={**case.parameters, parameter.name: default})
    implied, passed = (kit.score([one.item(kit.info.name)])[0] for one in (case, said))
    problem = ""
    if not _equal(implied, passed, 0.0 if kit.info.deterministic else _ROUNDING):
        problem = f"{outcome_text(implied)} without, {outcome_text(passed)} with it"
    kit.report.add("parameters", f"the default of {parameter.name} can be passed", problem)


def _equal(one: Result, other: Result, tolerance: float) -> bool:
    """The same verdict and, up to rounding, reward; or the same fault."""
    if one.judgement is None or other.judgement is None:
        reasons = [result.fault.reason if result.fault else "" for result in (one, other)]
        return reasons[0] == reasons[1]
    difference = abs(one.judgement.reward - other.judgement.reward)
    return one.judgement.verdict == other.judgement.verdict and difference <= tolerance


def _wrong_values(parameter: ParameterInfo) -> Iterator[Parameter]:
    """A value of a wrong type, and values outside the declared range."""
    yield 1 if parameter.type in ("bool", "string", "string_list") else "not a number"
    if parameter.allowed_values:
        yield "no-such-value"
    if parameter.type in ("int", "float"):
        whole = parameter.type == "int"
        if parameter.minimum is not None:
            low = parameter.minimum - 1
            yield int(low) if whole else low
        if parameter.maximum is not None:
            high = parameter.maximum + 1
            yield int(high) if whole else high
        if not whole:
            yield float("nan")


def _expect(kit: Kit, what: str, case: Case, reason: Reason | None = None) -> None:
    """Expects a fault with this reason, or any that blames neither verifier nor server."""
    result = kit.score([case.item(kit.info.name)])[0]
    fault = result.fault
    wrong = fault is None or fault.reason in OURS or (reason and fault.reason != reason)
    group = "parameters" if reason == Reason.INVALID_PARAMETER else "references"
    kit.report.add(group, what, outcome_text(result) if wrong else "")


def _expect_sound(kit: Kit, what: str, case: Case) -> None:
    result = kit.score([case.item(kit.info.name)])[0]
    ours = result.fault is not None and result.fault.reason in OURS
    kit.report.add("references", what, outcome_text(result) if ours else "")
