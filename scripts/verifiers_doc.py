"""Writes docs/use/verifiers, the catalogue of verifiers and profiles, from the registry itself.

python scripts/verifiers_doc.py write    writes the catalogue: index.md and a page for each family
python scripts/verifiers_doc.py check    exits with 1 when a page differs from the registry
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
from types import ModuleType
from typing import cast

import written
from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.kit.reliability import ErrorRate
from assay.reward_server import border
from assay.reward_server.domain import (
    CompositeVerifier,
    Judgement,
    ParameterSpec,
    RemoteVerifier,
    Verifier,
    VerifierExample,
    VerifierItem,
    VerifierSpec,
)
from assay.reward_server.profiles import Profile, load_profiles
from assay.reward_server.registry import COMPOSITES, FAMILIES, Registry, plug_ins
from assay.reward_server.reliability import load_reliability
from assay.reward_server.verifiers import judges, sandboxed

FOLDER = written.ROOT / "docs" / "use" / "verifiers"
_PROFILES = "shipped-profiles"
_SHOWN_CHARS = 90
_CALL_CHARS = 700
_LINE_CHARS = 100
# What paragraphs of the modules begin with, and how it is shown.
_LEADS = {
    r"How": "How",
    r"What (?:a policy could game|could be gamed)": "What a policy could game",
    r"(?:Known l|L)imits": "Known limits",
    r"(Differences(?: from [a-z' ]+)?)": r"\1",
    r"(Sources?|Faults|Cost|Measured)": r"\1",
}
_ISOLATION = {
    "inline": "in the server's own process: bounded work on any text",
    "process": "in a worker process that is killed at the item's time-out",
    "remote": "by another service",
}
_RATES = (
    "Measured by `python -m bench reliability`; in brackets 95 % intervals. Faults are in no rate."
)
_EXTRA = "Served where [assay-rl-verifiers-extra](../../../plugins/verifiers_extra) is installed.\n"
_NOTE = "<!-- Written by scripts/verifiers_doc.py from the verifiers themselves; do not edit. -->\n"
_HEAD = f"""# Verifiers

{_NOTE}
For whoever asks a reward server for rewards: what it can judge, one line for each verifier. Ask for
a verifier by its name (`verifier="math"`), or name a task (`task="gsm8k"`) and the server picks the
verifier. Behind its name each has: an item to copy into `RewardClient.score`
([quickstart.md](../quickstart.md)), its parameters, which are typed and checked, what it gives for
some responses (every server judges those rows when it starts), and its known limits. A version
changes whenever some item would be judged otherwise. `assay verifiers` prints what a running server
has. To add one: [write-a-verifier.md](../../extend/write-a-verifier.md). To compose them:
[profiles.md](../profiles.md).
"""
_OPENING = """For whoever asks for {names}: which item to send, with which
parameters, what which response earns, and where the verdict errs. [All verifiers](index.md) are on
one page.
"""
_OPENING_PROFILES = """For whoever asks for a reward that is composed already: the
profiles that come with the server. Ask for one by its name, as for a verifier;
[profiles.md](../profiles.md) explains the format, and how to write your own.
[All verifiers](index.md) are on one page.
"""


def families_here() -> dict[str, list[Verifier]]:
    """The verifiers of this repository by family: those of the server, of its plug-in, and more."""
    families = {name: list(family) for name, family in FAMILIES.items()}
    for verifier in plug_ins():
        module = _module_of(verifier).__name__
        if module.startswith("assay."):
            families.setdefault(module.split(".")[-2], []).append(verifier)
    return families | asking_verifiers()


def _module_of(verifier: Verifier) -> ModuleType:
    module = inspect.getmodule(getattr(verifier, "function", type(verifier)))
    if module is None:
        raise ValueError(f"{verifier.spec.name} stands in no module")
    return module


def unmeasured() -> list[str]:
    """The verifiers whose module has no paragraph "Measured: ..."."""
    return [
        verifier.spec.name
        for family in families_here().values()
        for verifier in family
        if "**Measured.**" not in prose(_module_of(verifier).__doc__ or "")
    ]


def asking_verifiers() -> dict[str, list[Verifier]]:
    """Verifiers that ask others or another service; nothing is asked of them here."""
    sandbox, genrm = cast("AsyncExecutionClient", None), cast("AsyncJudgeClient", None)
    return {
        "sandbox": [make(sandbox) for make in sandboxed.VERIFIERS],
        "models": [make(genrm) for make in judges.VERIFIERS],
        "composites": [compose(lambda _: None) for compose in COMPOSITES],
    }


def render() -> dict[str, str]:
    """The catalogue: the names of its pages, and each page's Markdown."""
    missing = unmeasured()
    if missing:
        raise ValueError(
            f"{', '.join(missing)}: say in the module's docstring, in a paragraph 'Measured: ...', "
            "how often it errs and on what, or 'not yet, because ...'"
        )
    families = families_here()
    everyone = [verifier for family in families.values() for verifier in family]
    profiles = load_profiles([], Registry(everyone).verifier)
    specs = {name: [verifier.spec for verifier in family] for name, family in families.items()}
    parts = {"index": [_HEAD, *_overview(specs | {_PROFILES: [p.spec for p in profiles]})]}
    parts |= {name: _family(name, family) for name, family in families.items()}
    parts[_PROFILES] = [_title(_PROFILES), _OPENING_PROFILES, *map(_profile, profiles)]
    return {f"{name}.md": "\n".join(part).rstrip() + "\n" for name, part in parts.items()}


def _title(page: str) -> str:
    return f"# {page.replace('-', ' ').capitalize()}\n\n{_NOTE}"


def _overview(specs: dict[str, list[VerifierSpec]]) -> list[str]:
    """A table for each page. Its rows have anchors: links to the one page of old still arrive."""
    tables = []
    for page, listed in specs.items():
        rows = [f"## {page.replace('-', ' ').capitalize()}\n"]
        rows += ["| name | judges | tasks | reward |", "|---|---|---|---|"]
        for spec in listed:
            tasks = ", ".join(f"`{task}`" for task in spec.tasks) or "by name"
            name = f'<a id="{spec.name}"></a>[`{spec.name}`]({page}.md#{spec.name})'
            rows.append(f"| {name} | {_cell(spec.description)} | {tasks} | {_range(spec)} |")
        tables.append("\n".join(rows) + "\n")
    return tables


def _family(name: str, family: list[Verifier]) -> list[str]:
    names = ", ".join(f"`{verifier.spec.name}`" for verifier in family)
    parts = [_title(name), _OPENING.format(names=names)]
    extra = [_module_of(one).__name__.startswith("assay.verifiers_extra.") for one in family]
    if all(extra):
        parts.append(_EXTRA)
    documented: set[str] = set()
    for verifier, is_extra in zip(family, extra, strict=True):
        text = prose(_module_of(verifier).__doc__ or "")
        new = text not in documented
        documented.add(text)
        note = f"\n\n{_EXTRA.strip()}" if is_extra and not all(extra) else ""
        parts.append(_section(verifier, f"{text}{note}" if new else ""))
    return parts


def _section(verifier: Verifier, text: str) -> str:
    spec = verifier.spec
    lines = [f"## {spec.name}\n"]
    if text:
        lines.append(text + "\n")
    where = _ISOLATION[spec.isolation]
    if isinstance(verifier, CompositeVerifier):
        where = "by other verifiers of the same server"
    lines.append(f"Version `{spec.version}`; reward {_range(spec)}; judged {where}.")
    lines.append(f"Verdicts: {', '.join(f'`{verdict}`' for verdict in spec.verdicts)}.\n")
    lines += _measured(spec)
    if spec.parameters:
        lines += ["| parameter | takes | default | |", "|---|---|---|---|"]
        lines += [_parameter(parameter) for parameter in spec.parameters]
        lines.append("")
    call = next(filter(None, (as_call(spec, example) for example in verifier.examples)), None)
    if call:
        lines.append(f"```python\n{call}\n```\n")
    rewards = [reward_of(verifier, example) for example in verifier.examples]
    if any(rewards):
        lines += ["| response | reference | verdict | reward |", "|---|---|---|---|"]
    else:
        lines += ["| response | reference | verdict |", "|---|---|---|"]
    for example, reward in zip(verifier.examples, rewards, strict=True):
        lines.append(_example(example) + (f" {reward} |" if any(rewards) else ""))
    return "\n".join(lines) + "\n"


def _measured(spec: VerifierSpec) -> list[str]:
    """How often it was found wrong, a row for each domain."""
    rates = load_reliability(()).get(spec.name, ())
    if not rates:
        return []
    head = [
        "| measured on | wrong accepted, % | right rejected, % | truth | version |",
        "|---|---|---|---|---|",
    ]
    rows = [
        f"| {one.domain} | {_rate(one.false_positive)} | {_rate(one.false_negative)} | {one.truth} "
        f"| `{one.verifier_version}` |"
        for one in rates
    ]
    return [*head, *rows, f"\n{_RATES}\n"]


def _rate(rate: ErrorRate | None) -> str:
    if rate is None:
        return "-"
    low, high = (f"{100 * end:.2g}" for end in (rate.low, rate.high))
    return f"{100 * rate.value:.2g} ({low} to {high}) of {rate.responses:,}"


def prose(text: str) -> str:
    """A module's docstring as Markdown: its usual paragraphs with their names in bold."""
    text = inspect.cleandoc(text)
    for lead, name in _LEADS.items():
        bare = rf"(?:(?<=\n)|(?<=[.)] ))(?:\*\*)?{lead}[.:](?:\*\*)? (?=\S)"
        text = re.sub(bare, rf"\n\n**{name}.** ", text)
    lines: list[str] = []
    for raw in text.splitlines():
        line = re.sub(r"^ (?=\S)", "", raw)
        listed = re.match(r"(?:- |\d\. )", line)
        if listed and lines and lines[-1] and not re.match(r"- |\d\. |  ", lines[-1]):
            lines.append("")
        lines.append(re.sub(r"^(?=\|\w+\|)", r"\\", line))
    text = re.sub(
        r"(?<=\.\*\* )[a-z](?![a-z]*[-_`])", lambda match: match[0].upper(), "\n".join(lines)
    )
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def reward_of(verifier: Verifier, example: VerifierExample) -> str:
    """What the example earns, to three digits; empty where another service would be asked.

    Raises:
        ValueError: the example is not judged as it says.
    """
    if isinstance(verifier, RemoteVerifier | CompositeVerifier):
        return ""
    parameters = verifier.spec.complete(example.item.parameters)
    item = dataclasses.replace(example.item, parameters=parameters)
    outcome = border.judge(verifier, item)
    if not isinstance(outcome, Judgement) or outcome.verdict != example.verdict:
        raise ValueError(f"{verifier.spec.name}: an example gets {outcome}")
    return f"{outcome.reward:.3g}"


def as_call(spec: VerifierSpec, example: VerifierExample) -> str | None:
    """The example as `Item(...)` of the client; None where it is too long, or has tests."""
    item = example.item
    if item.tests is not None or item.candidate.text is None:
        return None
    given: dict[str, str] = {}
    if item.data is not None:
        texts = isinstance(item.data, list) and all(isinstance(d, str) for d in item.data)
        given["reference"] = f"Data({_literal(item.data)})" if texts else _literal(item.data)
    elif item.anchor is not None:
        given["reference"] = f"Anchor({_literal(item.anchor)})"
    elif item.references:
        one = len(item.references) == 1
        given["reference"] = _literal(item.references[0] if one else list(item.references))
    given["verifier"] = _literal(spec.name)
    if item.prompt:
        messages = [{"role": m.role, "content": m.content} for m in item.prompt]
        plain = len(messages) == 1 and messages[0]["role"] == "user"
        given["prompt"] = _literal(messages[0]["content"] if plain else messages)
    usual = {parameter.name: parameter.default for parameter in spec.parameters}
    special = {k: v for k, v in item.parameters.items() if v != usual[k]}
    values: dict[str, object] = {
        "parameters": special,
        "response_token_count": item.response_token_count,
    }
    values |= {"truncated": item.truncated, "group_id": item.group_id}
    given |= {key: _literal(value) for key, value in values.items() if value}
    lines = [_literal(item.candidate.text), *(f"{key}={value}" for key, value in given.items())]
    whole = f"Item({', '.join(lines)})"
    if len(whole) <= _SHOWN_CHARS:
        return whole
    if isinstance(item.data, dict):
        lines[1] = f"reference={_laid_out(item.data, 4)}"
    broken = "Item(\n" + "".join(f"    {line},\n" for line in lines) + ")"
    return broken if len(broken) <= _CALL_CHARS else None


def _laid_out(value: object, indent: int) -> str:
    """A value over as many lines as it needs, as the formatter breaks it."""
    whole = _literal(value)
    if not isinstance(value, dict) or indent + len("reference=,") + len(whole) <= _LINE_CHARS:
        return whole
    inner = " " * (indent + 4)
    rows = [f"{inner}{_literal(k)}: {_laid_out(v, indent + 4)},\n" for k, v in value.items()]
    return "{\n" + "".join(rows) + " " * indent + "}"


def _literal(value: object) -> str:
    """A value of JSON's kinds as Python."""
    match value:
        case str():
            return repr(value) if '"' in value else json.dumps(value, ensure_ascii=False)
        case dict():
            return f"{{{', '.join(f'{_literal(k)}: {_literal(v)}' for k, v in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_literal, value))}]"
    return repr(value)


def _profile(profile: Profile) -> str:
    spec = profile.spec
    tasks = ", ".join(f"`{task}`" for task in spec.tasks) or "none"
    return f"## {spec.name}\n\n{spec.description} Tasks: {tasks}; reward {_range(spec)}.\n"


def _parameter(parameter: ParameterSpec) -> str:
    takes = " or ".join(f"`{value}`" for value in parameter.allowed_values) or parameter.kind
    bounds = [
        f"{sign} {bound:g}"
        for sign, bound in (("at least", parameter.minimum), ("at most", parameter.maximum))
        if bound is not None
    ]
    if bounds:
        takes += f", {', '.join(bounds)}"
    default = "required" if parameter.default is None else f"`{_json(parameter.default)}`"
    return f"| `{parameter.name}` | {takes} | {default} | {_cell(parameter.description)} |"


def _example(example: VerifierExample) -> str:
    response = example.item.candidate.text
    if response is None:
        response = " / ".join(turn.content for turn in example.item.candidate.turns)
    return f"| {_code(response)} | {_code(_reference(example.item))} | `{example.verdict}` |"


def _reference(item: VerifierItem) -> str:
    if item.data is not None:
        return _json(item.data)
    if item.tests is not None:
        return "a suite of tests"
    if item.anchor is not None:
        return f"anchor: {item.anchor}"
    return " or ".join(item.references)


def _range(spec: VerifierSpec) -> str:
    return f"{spec.min_reward:g} to {spec.max_reward:g}"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _code(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    shown = line if len(line) <= _SHOWN_CHARS else line[: _SHOWN_CHARS - 3] + "..."
    if not shown:
        return ""
    ticks = "``" if "`" in shown else "`"
    pad = " " if "`" in shown else ""
    return f"{ticks}{pad}{_cell(shown)}{pad}{ticks}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(
        __doc__,
        "the registry",
        lambda: {FOLDER / name: text for name, text in render().items()},
        arguments,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
