"""Reads definitions of profiles from TOML. It knows no verifiers: `binding` checks against those.

docs/use/profiles.md describes the format.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib

from assay.kit.errors import ConfigError
from assay.reward_server.domain import (
    Candidate,
    JsonValue,
    Message,
    ParameterValue,
    VerifierExample,
    VerifierItem,
)
from assay.reward_server.profiles.model import (
    CARRIES,
    NOT_PREFIX,
    TASK_PREFIX,
    AppealRule,
    CanaryRow,
    Clip,
    Condition,
    Definition,
    Knob,
    Member,
    ProfileCanary,
    ProfileGate,
    ProfilePart,
    Route,
    When,
)
from assay.reward_server.profiles.tables import TomlTable, guess
from assay.reward_server.verifiers import code_suspicions
from assay.reward_server.verifiers.suspicions import FLAGS

ANY_FLAG = "any"
MEMBERS_FLAGS = ("security-violation", *code_suspicions.KINDS)
"""Flags that members raise, beside those of `suspicions.scan`."""

_RESERVED = frozenset({"clip", "gate"})
_RESERVED_ENDS = ("-raw", "-penalty")
_MAX_PARTS = 64
_SNAKE = re.compile(r"[a-z][a-z0-9_]*")
_PROFILE_KEYS = (
    *("name", "description", "tasks", "clip", "main", "spans"),
    *("gate", "component", "route", "parameters", "example", "canary"),
)
_GATE_KEYS = (
    *("name", "verifier", "parameters", "pass", "at_least", "suspicions"),
    *("reward", "penalty", "verdict"),
)
_PART_KEYS = (
    *("name", "verifier", "parameters", "weight", "scale", "offset", "clip"),
    *("when", "only_if", "optional", "appeal", "times"),
)
_SAMPLE_KEYS = (
    *("response", "verdict", "reference", "data", "anchor", "prompt"),
    *("token_count", "truncated", "task", "parameters"),
)
_NOT_JUDGING = ("description", "tasks", "example", "canary")
_MOST_SHARE = 0.2
_LEAST_ROWS, _MOST_ROWS = 20, 10_000


def read_profiles(text: str, source: str) -> list[Definition]:
    """The profiles of one file, in its order.

    Raises:
        ConfigError: names the file, the profile and the wrong key, and what is allowed there.
    """
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{source}: not TOML: {error}") from None
    table = TomlTable(content, source)
    table.only("profile")
    profiles = [_profile(one, source) for one in table.tables("profile", "profile")]
    if not profiles:
        raise ConfigError(f"{source}: holds no profile: begin one with [[profile]]")
    names = [profile.name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{source}: two profiles are named {name!r}")
    return profiles


def _profile(table: TomlTable, source: str) -> Definition:
    table.only(*_PROFILE_KEYS)
    digest = _digest(table)
    name = table.required("name", table.name("name", None))
    description = table.required("description", table.text("description", None))
    tasks = tuple(table.checked_name("tasks", task) for task in table.texts("tasks"))
    clip = table.bounds("clip")
    main = table.name("main", None)
    spans = table.name("spans", None) or ""
    gates = tuple(_gate(one) for one in table.tables("gate", "gate"))
    parts = tuple(_part(one) for one in table.tables("component", "component"))
    routes = tuple(_route(one) for one in table.tables("route", "route"))
    knobs = tuple(_knob(table, *one) for one in table.table_of("parameters").items())
    samples = tuple(_sample(one) for one in table.tables("example", "example"))
    if not parts:
        raise table.error("has no components: add [[profile.component]]")
    if len(parts) + len(gates) > _MAX_PARTS:
        raise table.error(f"has more than {_MAX_PARTS} gates and components")
    _check_names(table, [*(gate.name for gate in gates), *(part.name for part in parts)])
    _check_references(table, gates, parts, routes)
    _check_appeals(table, parts, routes)
    names = [part.name for part in parts]
    if spans and spans not in names:
        raise table.error(f"'spans': no component is named {spans!r}{guess(spans, names)}")
    first = next((part.name for part in parts if part.weight), parts[0].name)
    chosen = _main(table, main or first, parts, routes, named=main is not None)
    return Definition(
        source,
        name,
        description,
        tasks,
        gates,
        _in_order(table, parts),
        routes,
        chosen,
        Clip(*clip) if clip else None,
        knobs,
        samples,
        digest,
        spans,
        _canary(table),
    )


def _digest(table: TomlTable) -> str:
    """Of what bears on judging: another description is no other version."""
    content = {key: value for key, value in table.rest().items() if key not in _NOT_JUDGING}
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _check_names(table: TomlTable, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise table.error(f"two parts are named {name!r}: give one another 'name'")
        if name in _RESERVED or name.endswith(_RESERVED_ENDS):
            raise table.error(f"a part may not be named {name!r}: the report uses that name")


def _check_references(
    table: TomlTable,
    gates: tuple[ProfileGate, ...],
    parts: tuple[ProfilePart, ...],
    routes: tuple[Route, ...],
) -> None:
    components = [part.name for part in parts]
    judged = components + [gate.name for gate in gates if gate.member]
    for part in parts:
        if part.when and part.when.component not in judged:
            raise table.error(
                f"component {part.name!r}: 'when' refers to {part.when.component!r}, which is no "
                f"part of this profile{guess(part.when.component, judged)}"
            )
    _check_factors(table, parts)
    for number, route in enumerate(routes, start=1):
        if route.component not in components:
            raise table.error(
                f"route number {number}: no component is named {route.component!r}"
                f"{guess(route.component, components)}"
            )


def _check_factors(table: TomlTable, parts: tuple[ProfilePart, ...]) -> None:
    by_name = {part.name: part for part in parts}
    for part in parts:
        for factor in part.times:
            place = f"component {part.name!r}: 'times'"
            if factor not in by_name:
                raise table.error(
                    f"{place} names {factor!r}, which is no component{guess(factor, by_name)}"
                )
            if factor == part.name or part.times.count(factor) > 1:
                raise table.error(f"{place} names each other component once, and not itself")
            if by_name[factor].optional:
                raise table.error(
                    f"{place} names {factor!r}, which is 'optional': a factor must be judged"
                )


def _check_appeals(
    table: TomlTable, parts: tuple[ProfilePart, ...], routes: tuple[Route, ...]
) -> None:
    appealed = [part.name for part in parts if part.appeal]
    if len(appealed) > 1 and not {route.component for route in routes}.issuperset(appealed):
        raise table.error(
            f"components {', '.join(map(repr, appealed))} have an 'appeal', and a judgement says "
            "one: keep one, or have routes choose among them"
        )


def _main(
    table: TomlTable,
    name: str,
    parts: tuple[ProfilePart, ...],
    routes: tuple[Route, ...],
    *,
    named: bool,
) -> str:
    """The component that gives the verdict: one that is always judged."""
    if routes:
        if named:
            raise table.error("'main' has no use beside routes: the chosen component is the main")
        always = {route.component for route in routes}
    else:
        always = {name}
    by_name = {part.name: part for part in parts}
    for one in always:
        if one not in by_name:
            raise table.error(f"'main': no component is named {one!r}{guess(one, by_name)}")
        if by_name[one].when or by_name[one].only_if.words or by_name[one].optional:
            raise table.error(
                f"component {one!r} gives the verdict, so it must always be judged: it takes "
                "neither 'when' nor 'only_if' nor 'optional'"
                + ("" if routes else "; name another one with 'main'")
            )
    return name


def _in_order(table: TomlTable, parts: tuple[ProfilePart, ...]) -> tuple[ProfilePart, ...]:
    """The parts, once it is certain that no conditions wait for each other."""
    waits_for = {part.name: part.when.component for part in parts if part.when}
    for start in waits_for:
        seen = [start]
        while (following := waits_for.get(seen[-1])) is not None:
            if following in seen:
                circle = " -> ".join([*seen[seen.index(following) :], following])
                raise table.error(f"'when' goes round in a circle: {circle}")
            seen.append(following)
    return parts


def _member(table: TomlTable) -> Member | None:
    verifier = table.text("verifier", None)
    parameters = table.parameters("parameters")
    if verifier is None:
        if parameters:
            raise table.error("'parameters' needs a 'verifier'")
        return None
    return Member(verifier, parameters)


def _gate(table: TomlTable) -> ProfileGate:
    table.only(*_GATE_KEYS)
    member = _member(table)
    flags = table.texts("suspicions")
    if (member is None) == (not flags):
        raise table.error("needs either 'verifier' or 'suspicions'")
    for flag in flags:
        _check_flag(table, flag)
    passing, at_least = table.texts("pass"), table.number("at_least", None)
    if member is None and (passing or at_least is not None):
        raise table.error("'pass' and 'at_least' are for gates with a 'verifier'")
    if member is not None and bool(passing) == (at_least is not None):
        raise table.error("needs either 'pass' (verdicts) or 'at_least' (a reward)")
    reward, penalty = table.number("reward", None), table.number("penalty", None)
    if (reward is None) == (penalty is None):
        raise table.error(
            "needs either 'reward' (what the whole gets when the gate does not pass) or 'penalty' "
            "(what is taken off)"
        )
    if penalty is not None and penalty <= 0:
        raise table.error("'penalty' is taken off, so it must be above 0")
    if penalty is not None and table.has("verdict"):
        raise table.error("'verdict' has no use beside 'penalty': the rest is judged all the same")
    verdict = table.name("verdict", "gated" if member else "suspicious")
    name = table.name("name", member.verifier if member else "suspicions")
    return ProfileGate(
        name, member, frozenset(passing), at_least, frozenset(flags), reward, penalty, verdict
    )


def _check_flag(table: TomlTable, flag: str) -> None:
    known = (*FLAGS, *MEMBERS_FLAGS, ANY_FLAG)
    if flag not in known:
        raise table.error(f"no suspicion is named {flag[:80]!r}{guess(flag, known)}")


def _part(table: TomlTable) -> ProfilePart:
    table.only(*_PART_KEYS)
    member = table.required("verifier", _member(table))
    clip = table.bounds("clip")
    part = ProfilePart(
        table.name("name", member.verifier),
        member,
        table.number("weight", 1.0),
        table.number("scale", 1.0),
        table.number("offset", 0.0),
        Clip(*clip) if clip else None,
        _when(table),
        _condition(table, "only_if"),
        table.flag("optional", default=False),
        _appeal(table),
        table.texts("times"),
    )
    if part.optional and part.times:
        raise table.error("'times' is for components that must be judged: leave out 'optional'")
    if part.optional and part.appeal:
        raise table.error("'appeal' is for components that must be judged: leave out 'optional'")
    if part.optional and part.weight:
        raise table.error(
            "'optional' is for components of weight 0: a reward that lacks a part when "
            "something fails would be another reward"
        )
    return part


def _appeal(table: TomlTable) -> AppealRule | None:
    if not table.has("appeal"):
        return None
    inner = TomlTable(table.take("appeal"), f"{table.where}, 'appeal'")
    inner.only("verifier", "parameters", "on", "share", "accepts_at")
    rule = AppealRule(
        inner.required("verifier", _member(inner)),
        frozenset(inner.texts("on")),
        inner.number("share", 0.0),
        inner.number("accepts_at", 0.5),
    )
    if not 0.0 <= rule.share <= 1.0:
        raise inner.error("'share' is a chance: 0 to 1")
    if not rule.on and not rule.share:
        raise inner.error("asks about nothing: name verdicts in 'on', or a 'share' of all items")
    return rule


def _when(table: TomlTable) -> When | None:
    if not table.has("when"):
        return None
    inner = TomlTable(table.take("when"), f"{table.where}, 'when'")
    inner.only("component", "is", "is_not", "at_least")
    component = inner.required("component", inner.text("component", None))
    wanted, unwanted = inner.texts("is"), inner.texts("is_not")
    least = inner.number("at_least", None)
    if bool(wanted) + bool(unwanted) + (least is not None) != 1:
        raise inner.error("needs either 'is' or 'is_not', with verdicts, or 'at_least'")
    return When(component, frozenset(wanted or unwanted), bool(unwanted), least)


def _condition(table: TomlTable, key: str) -> Condition:
    words = table.texts(key)
    for word in words:
        name = word.removeprefix(NOT_PREFIX)
        if name not in CARRIES and not (name.startswith(TASK_PREFIX) and name != TASK_PREFIX):
            known = [*CARRIES, f"{TASK_PREFIX}NAME"]
            raise table.error(
                f"{key!r}: {word[:80]!r} is nothing that an item carries{guess(name, known)}; each "
                f"may begin with {NOT_PREFIX!r}"
            )
    return Condition(words)


def _route(table: TomlTable) -> Route:
    table.only("if", "use")
    return Route(_condition(table, "if"), table.required("use", table.text("use", None)))


def _knob(table: TomlTable, name: str, value: object) -> Knob:
    where = f"{table.where}, parameter {name!r}"
    if not _SNAKE.fullmatch(name):
        raise ConfigError(f"{where}: a parameter's name is in snake_case")
    inner = TomlTable({"sets": value} if isinstance(value, str | list) else value, where)
    inner.only("sets", "default", "description")
    targets = []
    for target in inner.texts("sets"):
        part, dot, parameter = target.rpartition(".")
        if not (part and dot and parameter):
            raise inner.error(f"'sets' names component.parameter, not {target[:80]!r}")
        targets.append((part, parameter))
    if not targets:
        raise inner.error("'sets' is missing: it names component.parameter")
    raw = inner.take("default")
    default: ParameterValue | None = None if raw is None else inner.value("default", raw)
    description = inner.text("description", None)
    return Knob(name, tuple(targets), default, description)


def _sample(table: TomlTable) -> VerifierExample:
    table.only(*_SAMPLE_KEYS)
    response = table.take("response")
    if not isinstance(response, str):
        raise table.error("'response' must be a text")
    data = table.take("data")
    prompt = table.text("prompt", None)
    item = VerifierItem(
        Candidate(response),
        references=table.texts("reference"),
        anchor=table.text("anchor", None),
        prompt=(Message("user", prompt),) if prompt else (),
        parameters=table.parameters("parameters"),
        response_token_count=table.whole("token_count"),
        truncated=table.flag("truncated", default=False),
        data=_plain(table, data),
        task=table.text("task", ""),
    )
    verdict = table.required("verdict", table.name("verdict", None))
    return VerifierExample(item, verdict)


def _canary(table: TomlTable) -> ProfileCanary | None:
    if not table.has("canary"):
        return None
    inner = TomlTable(table.take("canary"), f"{table.where}, 'canary'")
    inner.only("file", "share")
    share = inner.required("share", inner.number("share", None))
    if not 0 < share <= _MOST_SHARE:
        raise inner.error(f"'share' must be above 0 and at most {_MOST_SHARE:g}, not {share:g}")
    return ProfileCanary(inner.required("file", inner.text("file", None)), share)


def read_canaries(text: str, source: str) -> tuple[CanaryRow, ...]:
    """The rows of a file of canaries: JSON lines with the keys of `[[profile.example]]`.

    Raises:
        ConfigError: names the file, the line and the wrong key.
    """
    rows: list[CanaryRow] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            rows.append(_canary_row(line, f"{source}:{number}"))
    if not _LEAST_ROWS <= len(rows) <= _MOST_ROWS:
        raise ConfigError(f"{source}: {len(rows)} rows; give {_LEAST_ROWS} to {_MOST_ROWS:,}")
    if len({len(row.before) for row in rows}) > 1:
        raise ConfigError(f"{source}: 'before' must hold equally many verdicts in every row")
    return tuple(rows)


def _canary_row(line: str, where: str) -> CanaryRow:
    try:
        content = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: not JSON: {error}") from None
    table = TomlTable(content, where)
    before = table.texts("before")
    return CanaryRow(_sample(table), before)


def _plain(table: TomlTable, value: object) -> JsonValue:
    try:
        plain: JsonValue = json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise table.error("'data' must be what JSON can hold: no dates, no infinities") from None
    return plain
