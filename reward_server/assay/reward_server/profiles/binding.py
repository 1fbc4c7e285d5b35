"""Checks a profile's definition against the verifiers of this server, and describes the profile."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from assay.kit.errors import ConfigError
from assay.reward_server.absent import WHAT_BRINGS
from assay.reward_server.domain import (
    Isolation,
    Lookup,
    ParameterSpec,
    ParameterValue,
    Unjudgeable,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.profiles import appeals
from assay.reward_server.profiles.model import (
    AppealRule,
    CanaryRow,
    Definition,
    Knob,
    Member,
    ProfileCanary,
    ProfilePart,
)
from assay.reward_server.profiles.tables import guess
from assay.reward_server.verifiers import suspicions

ENGINE_VERSION = "1"
"""Changes whenever the engine would make another judgement of the same parts."""

_UNSERVED_RANGE = (0.0, 1.0)

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """A verifier as a profile asks it.

    Attributes:
        part: the gate or component that asks; "NAME.appeal" for a component's second verifier.
        verifier: its name.
        spec: None while it is not served.
        fixed: parameters that the profile sets, or that have defaults.
        by_knob: the profile's parameter for each of the verifier's that it sets.
    """

    part: str
    verifier: str
    spec: VerifierSpec | None
    fixed: Mapping[str, ParameterValue]
    by_knob: Mapping[str, str] = field(default_factory=dict)

    def parameters(self, item: VerifierItem) -> dict[str, ParameterValue]:
        """The verifier's parameters for an item of the profile."""
        values = dict(self.fixed)
        for name, knob in self.by_knob.items():
            values[name] = item.parameters[knob]
        return values

    @property
    def needs_reference(self) -> bool:
        """Whether an item needs a reference for it."""
        return self.spec is None or self.spec.needs_reference or self.spec.takes_tests

    @property
    def range(self) -> Interval:
        """The verifier's least and greatest reward."""
        return (self.spec.min_reward, self.spec.max_reward) if self.spec else _UNSERVED_RANGE


@dataclass(frozen=True, slots=True)
class Binding:
    """A profile that this server can judge by.

    Attributes:
        definition: from its file.
        bound: its verifiers, by the name of the gate or component.
        spec: its description.
        examples: items with known verdicts.
        key: by which items are drawn for appeals.
        canary: the rows, complete; None for none.
    """

    definition: Definition
    bound: Mapping[str, Bound]
    spec: VerifierSpec
    examples: tuple[VerifierExample, ...]
    key: bytes
    canary: ProfileCanary | None = None


def bind(
    definition: Definition,
    lookup: Lookup,
    known: Iterable[str] = (),
    key: bytes = appeals.PROCESS_KEY,
) -> Binding:
    """Checks a definition against the verifiers that there are.

    Args:
        definition: from its file.
        lookup: the verifier of a name, None if there is none.
        known: names of verifiers, for messages.
        key: by which items are drawn for appeals.

    Raises:
        ConfigError: it does not fit; the message names file, profile, part and key.
    """
    where = f"{definition.source}, profile {definition.name!r}"
    bound: dict[str, Bound] = {}
    for gate in definition.gates:
        if gate.member:
            place = f"{where}, gate {gate.name!r}"
            bound[gate.name] = one = _bound(gate.name, gate.member, place, lookup, known)
            _check_verdicts((one,), gate.passing, f"{place}, 'pass'")
    for part in definition.parts:
        place = f"{where}, component {part.name!r}"
        bound[part.name] = one = _bound(part.name, part.member, place, lookup, known)
        if part.appeal:
            place = f"{place}, 'appeal'"
            second = _bound(part.second, part.appeal.member, place, lookup, known)
            bound[part.second] = second
            _check_verdicts((one,), part.appeal.on, f"{place}, 'on'")
            _check_scales(part.appeal, (one, second), place)
    for part in definition.parts:
        if part.when:
            place = f"{where}, component {part.name!r}, 'when'"
            asked = (part.when.component, f"{part.when.component}.appeal")
            others = [bound[name] for name in asked if name in bound]
            _check_verdicts(others, part.when.verdicts, place)
    parameters: list[ParameterSpec] = []
    for knob in definition.knobs:
        parameter = _turn_into_parameter(knob, bound, where)
        parameters += [parameter] if parameter else []
    _check_required(bound, where)
    version = _version(definition, bound, key)
    spec = _spec(definition, bound, tuple(parameters), where, version)
    examples = _examples(definition, bound, spec, where)
    return Binding(definition, bound, spec, examples, key, _canary(definition, bound, spec))


def _bound(part: str, member: Member, place: str, lookup: Lookup, known: Iterable[str]) -> Bound:
    verifier = lookup(member.verifier)
    if verifier is None:
        if member.verifier not in WHAT_BRINGS:
            names = {*known, *WHAT_BRINGS}
            raise ConfigError(
                f"{place}: no verifier is named {member.verifier[:80]!r} (profiles do not nest)"
                f"{guess(member.verifier, names)}"
            )
        return Bound(part, member.verifier, None, dict(member.parameters))
    spec = verifier.spec
    by_name = {parameter.name: parameter for parameter in spec.parameters}
    fixed = {
        name: parameter.default
        for name, parameter in by_name.items()
        if parameter.default is not None
    }
    for name, value in member.parameters.items():
        if name not in by_name:
            raise ConfigError(
                f"{place}: verifier {spec.name!r} has no parameter {name!r}{guess(name, by_name)}"
            )
        fixed[name] = _checked(by_name[name], value, place)
    return Bound(part, member.verifier, spec, fixed)


def _checked(parameter: ParameterSpec, value: ParameterValue, place: str) -> ParameterValue:
    try:
        return parameter.checked(value)
    except Unjudgeable as trouble:
        raise ConfigError(f"{place}: {trouble.message}") from None


def _check_verdicts(asked: Sequence[Bound], verdicts: Iterable[str], place: str) -> None:
    """Each verdict must be one that one of those who are asked gives."""
    if any(one.spec is None for one in asked):
        return
    known = [verdict for one in asked if one.spec for verdict in one.spec.verdicts]
    for verdict in verdicts:
        if verdict not in known:
            names = " or ".join(repr(one.verifier) for one in asked)
            raise ConfigError(
                f"{place}: verifier {names} gives no verdict {verdict[:80]!r}"
                f"{guess(verdict, known)}"
            )


def _check_scales(rule: AppealRule, bound: Iterable[Bound], place: str) -> None:
    """Both verifiers must be able to accept and to reject, on one scale."""
    for one in bound:
        low, high = one.range
        if one.spec is not None and not low < rule.accepts_at <= high:
            raise ConfigError(
                f"{place}: verifier {one.verifier!r} gives rewards from {low:g} to {high:g}, so "
                f"one from {rule.accepts_at:g} tells nothing: set 'accepts_at' to a reward from "
                "which both verifiers accept, or ask one whose rewards are alike"
            )


def _check_required(bound: Mapping[str, Bound], where: str) -> None:
    for one in bound.values():
        for parameter in one.spec.parameters if one.spec else ():
            if parameter.name not in one.fixed and parameter.name not in one.by_knob:
                raise ConfigError(
                    f"{where}, part {one.part!r}: verifier {one.verifier!r} needs the parameter "
                    f"{parameter.name!r}: set it in 'parameters', or let the item set it in "
                    "[profile.parameters]"
                )


def _turn_into_parameter(knob: Knob, bound: dict[str, Bound], where: str) -> ParameterSpec | None:
    """The parameter of the profile; None while none of its verifiers is served."""
    place = f"{where}, parameter {knob.name!r}"
    targets: list[ParameterSpec] = []
    values: list[ParameterValue | None] = []
    for part, name in knob.targets:
        if part not in bound:
            raise ConfigError(f"{place}: no part is named {part!r}{guess(part, bound)}")
        one = bound[part]
        if one.spec is None:
            continue
        by_name = {parameter.name: parameter for parameter in one.spec.parameters}
        if name not in by_name:
            raise ConfigError(
                f"{place}: verifier {one.verifier!r} of {part!r} has no parameter {name!r}"
                f"{guess(name, by_name)}"
            )
        targets.append(by_name[name])
        values.append(one.fixed.get(name))
        bound[part] = dataclasses.replace(one, by_knob={**one.by_knob, name: knob.name})
    if not targets:
        return None
    if knob.default is None and any(value != values[0] for value in values):
        raise ConfigError(f"{place}: its targets have different values: give it a 'default'")
    default = values[0] if knob.default is None else knob.default
    return _common(knob, targets, default, place)


def _common(
    knob: Knob, targets: list[ParameterSpec], default: ParameterValue | None, place: str
) -> ParameterSpec:
    """A parameter with the values that all targets take."""
    if len({target.kind for target in targets}) > 1:
        kinds = ", ".join(target.kind for target in targets)
        raise ConfigError(f"{place}: its targets are of different kinds: {kinds}")
    choices = [set(target.allowed_values) for target in targets if target.allowed_values]
    allowed = set.intersection(*choices) if choices else set()
    minima = [target.minimum for target in targets if target.minimum is not None]
    maxima = [target.maximum for target in targets if target.maximum is not None]
    spec = dataclasses.replace(
        targets[0],
        name=knob.name,
        default=default,
        description=knob.description or targets[0].description,
        allowed_values=tuple(one for one in targets[0].allowed_values if one in allowed),
        minimum=max(minima, default=None),
        maximum=min(maxima, default=None),
    )
    if default is not None:
        spec = dataclasses.replace(spec, default=_checked(spec, default, place))
    return spec


def _spec(
    definition: Definition,
    bound: Mapping[str, Bound],
    parameters: tuple[ParameterSpec, ...],
    where: str,
    version: str,
) -> VerifierSpec:
    low, high = reward_range(definition, bound)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(f"{where}: its reward has no finite bounds: lower weights, or set 'clip'")
    specs = [one.spec for one in bound.values()]
    return VerifierSpec(
        name=definition.name,
        version=version,
        description=definition.description,
        tasks=definition.tasks,
        min_reward=low,
        max_reward=high,
        verdicts=_verdicts(definition, bound),
        parameters=parameters,
        deterministic=all(spec is not None and spec.deterministic for spec in specs),
        cacheable=all(spec is not None and spec.cacheable for spec in specs),
        needs_reference=_needs_reference(definition, bound),
        needs_group=any(spec is not None and spec.needs_group for spec in specs),
        isolation=_isolation(specs),
        takes_tests=any(spec is None or spec.takes_tests for spec in specs),
        takes_any=True,
        lazy=any(spec is not None and spec.lazy for spec in specs),
        is_profile=True,
    )


def _version(definition: Definition, bound: Mapping[str, Bound], key: bytes) -> str:
    """Changes with the profile, the engine, the flags or a verifier; where it draws, the key."""
    parts = [ENGINE_VERSION, suspicions.VERSION, definition.digest]
    if any(part.appeal and part.appeal.draws for part in definition.parts):
        parts.append(f"key={appeals.mark(key)}")
    for name, one in sorted(bound.items()):
        parts.append(f"{name}={one.verifier}:{one.spec.version if one.spec else 'none'}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _verdicts(definition: Definition, bound: Mapping[str, Bound]) -> tuple[str, ...]:
    names = [route.component for route in definition.routes] or [definition.main]
    found: dict[str, None] = {}
    for part in definition.parts:
        for one in part.asked if part.name in names else ():
            spec = bound[one].spec
            found.update(dict.fromkeys(spec.verdicts if spec else ()))
    for gate in definition.gates:
        if gate.reward is not None:
            found[gate.verdict] = None
    return tuple(found)


def _needs_reference(definition: Definition, bound: Mapping[str, Bound]) -> bool:
    """Whether every route needs one."""
    routed = {route.component for route in definition.routes}
    always = [gate.name for gate in definition.gates if gate.member]
    asked = {part.name: part.asked for part in definition.parts}
    always += [
        name
        for part in definition.parts
        if part.name not in routed and not part.only_if.words and not part.optional
        for name in part.asked
    ]
    if any(bound[name].needs_reference for name in always):
        return True
    return bool(definition.routes) and all(
        route.condition.asks_for_reference()
        or any(bound[name].needs_reference for name in asked[route.component])
        for route in definition.routes
    )


def _isolation(specs: Iterable[VerifierSpec | None]) -> Isolation:
    kinds = {spec.isolation if spec else "remote" for spec in specs}
    return "remote" if "remote" in kinds else "process" if "process" in kinds else "inline"


def reward_range(definition: Definition, bound: Mapping[str, Bound]) -> Interval:
    """The least and the greatest reward, whatever the parts give within their own ranges."""
    routed = {route.component for route in definition.routes}
    spans = {part.name: _contribution(part, definition, bound) for part in definition.parts}
    always = [spans[part.name] for part in definition.parts if part.name not in routed]
    always += [(-gate.penalty, 0.0) for gate in definition.gates if gate.penalty is not None]
    chosen = [spans[part.name] for part in definition.parts if part.name in routed]
    if chosen:
        always.append((min(low for low, _ in chosen), max(high for _, high in chosen)))
    low = math.fsum(low for low, _ in always)
    high = math.fsum(high for _, high in always)
    if definition.clip:
        low, high = definition.clip(low), definition.clip(high)
    rewards = [gate.reward for gate in definition.gates if gate.reward is not None]
    return min([low, *rewards]), max([high, *rewards])


def _contribution(
    part: ProfilePart, definition: Definition, bound: Mapping[str, Bound]
) -> Interval:
    """The range of weight times shaped reward; it includes 0 where the part may be left out."""
    parts = {one.name: one for one in definition.parts}
    factors = [parts[name] for name in part.times]  # multiplied in the order of the judgement
    ends = [part.weight]
    for one in (part, *factors):
        products = [end * other for end in ends for other in _shaped_range(one, bound)]
        ends = [min(products), max(products)]
    routed = {route.component for route in definition.routes}
    is_sure = not part.optional and not any(one.name in routed for one in factors)
    if not is_sure or any(one.when or one.only_if.words for one in (part, *factors)):
        ends.append(0.0)
    return min(ends), max(ends)


def _shaped_range(part: ProfilePart, bound: Mapping[str, Bound]) -> Interval:
    ends = [part.shaped(end) for name in part.asked for end in bound[name].range]
    return min(ends), max(ends)


def _examples(
    definition: Definition, bound: Mapping[str, Bound], spec: VerifierSpec, where: str
) -> tuple[VerifierExample, ...]:
    """The file's examples, complete, that this server can judge by itself."""
    found: list[VerifierExample] = []
    for number, sample in enumerate(definition.samples, start=1):
        place = f"{where}, example number {number}"
        if sample.verdict not in spec.verdicts and all(one.spec for one in bound.values()):
            raise ConfigError(
                f"{place}: the profile gives no verdict {sample.verdict!r}"
                f"{guess(sample.verdict, spec.verdicts)}"
            )
        names = {gate.name for gate in definition.gates if gate.member}
        chosen = selected(definition, sample.item) or ()
        names |= {name for part in chosen for name in part.asked}
        if any((one := bound[name].spec) is None or one.isolation == "remote" for name in names):
            continue
        found.append(_complete(sample, spec, place))
    return tuple(found)


def _canary(
    definition: Definition, bound: Mapping[str, Bound], spec: VerifierSpec
) -> ProfileCanary | None:
    """The canaries, their items complete."""
    canary = definition.canary
    if canary is None:
        return None
    if spec.needs_group:
        raise ConfigError(
            f"{definition.source}, profile {definition.name!r}, 'canary': a part compares the "
            "responses of a group, and a canary stands alone"
        )
    rows: list[CanaryRow] = []
    for number, row in enumerate(canary.rows, start=1):
        place = f"{canary.file}, row {number}"
        for verdict in (row.example.verdict, *row.before):
            if verdict not in spec.verdicts and all(one.spec for one in bound.values()):
                raise ConfigError(
                    f"{place}: profile {definition.name!r} gives no verdict {verdict[:80]!r}"
                    f"{guess(verdict, spec.verdicts)}"
                )
        rows.append(dataclasses.replace(row, example=_complete(row.example, spec, place)))
    return dataclasses.replace(canary, rows=tuple(rows))


def _complete(sample: VerifierExample, spec: VerifierSpec, place: str) -> VerifierExample:
    try:
        parameters = spec.complete(sample.item.parameters)
    except Unjudgeable as trouble:
        raise ConfigError(f"{place}: {trouble.message}") from None
    item = dataclasses.replace(sample.item, parameters=parameters)
    return VerifierExample(item, sample.verdict)


def selected(definition: Definition, item: VerifierItem) -> list[ProfilePart] | None:
    """The parts that apply to an item, by what it carries; None when no route applies."""
    routed = {route.component for route in definition.routes}
    chosen = chosen_route(definition, item)
    if chosen is None and routed:
        return None
    return [
        part
        for part in definition.parts
        if (part.name == chosen if part.name in routed else part.only_if.holds(item))
    ]


def chosen_route(definition: Definition, item: VerifierItem) -> str | None:
    """The component of the first route that applies."""
    for route in definition.routes:
        if route.condition.holds(item):
            return route.component
    return None
