"""Writes docs/verifiers.md, the catalogue of verifiers and profiles, from the registry itself.

python scripts/verifiers_doc.py write    writes the catalogue
python scripts/verifiers_doc.py check    exits with 1 when the file differs from the registry
"""

from __future__ import annotations

import inspect
import json
import sys
from pathlib import Path
from typing import cast

from assay.clients.execution import AsyncExecutionClient
from assay.clients.judging import AsyncJudgeClient
from assay.reward_server.domain import (
    CompositeVerifier,
    Example,
    Item,
    ParameterSpec,
    Verifier,
    VerifierSpec,
)
from assay.reward_server.profiles import Profile, load_profiles
from assay.reward_server.registry import COMPOSITES, FAMILIES, Registry
from assay.reward_server.verifiers import judges
from assay.reward_server.verifiers.code import CodeVerifier
from assay.reward_server.verifiers.sql import SqlVerifier

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "verifiers.md"
_SHOWN_CHARS = 90
_ISOLATION = {
    "inline": "in the server's own process: bounded work on any text",
    "process": "in a worker process that is killed at the item's time-out",
    "remote": "by another service",
}
_HEAD = """# Verifiers

Written by `scripts/verifiers_doc.py` from the verifiers themselves; do not edit. Ask for one by its
name (`verifier`) or by a task (`task`). Parameters are typed and checked; `assay verifiers` prints
those of a server. A version changes whenever some item would be judged otherwise. To add one:
[write-a-verifier.md](write-a-verifier.md). To compose them: [profiles.md](profiles.md).
"""


def asking_verifiers() -> dict[str, list[Verifier]]:
    """Verifiers that ask others or another service; nothing is asked of them here."""
    sandbox, genrm = cast("AsyncExecutionClient", None), cast("AsyncJudgeClient", None)
    return {
        "sandbox": [CodeVerifier(sandbox), SqlVerifier(sandbox)],
        "models": [make(genrm) for make in judges.VERIFIERS],
        "composites": [compose(lambda _: None) for compose in COMPOSITES],
    }


def render() -> str:
    """The catalogue as Markdown."""
    families = {name: [make() for make in makes] for name, makes in FAMILIES.items()}
    families |= asking_verifiers()
    everyone = [verifier for family in families.values() for verifier in family]
    profiles = load_profiles([], Registry(everyone).verifier)
    parts = [_HEAD, _overview(everyone, profiles)]
    for name, family in families.items():
        parts.append(f"## {name.capitalize()}\n")
        documented: set[str] = set()
        for verifier in family:
            module = inspect.getmodule(type(verifier))
            text = inspect.cleandoc(module.__doc__ or "") if module else ""
            new = text not in documented
            documented.add(text)
            parts.append(_section(verifier, text if new else ""))
    parts.append("## Shipped profiles\n")
    parts += [_profile(profile) for profile in profiles]
    return "\n".join(parts).rstrip() + "\n"


def _overview(verifiers: list[Verifier], profiles: list[Profile]) -> str:
    rows = ["| name | judges | tasks | reward |", "|---|---|---|---|"]
    for spec in [v.spec for v in verifiers] + [p.spec for p in profiles]:
        tasks = ", ".join(f"`{task}`" for task in spec.tasks) or "by name"
        name = f"[`{spec.name}`](#{spec.name})"
        rows.append(f"| {name} | {_cell(spec.description)} | {tasks} | {_range(spec)} |")
    return "\n".join(rows) + "\n"


def _section(verifier: Verifier, text: str) -> str:
    spec = verifier.spec
    lines = [f"### {spec.name}\n"]
    if text:
        lines.append(text + "\n")
    where = _ISOLATION[spec.isolation]
    if isinstance(verifier, CompositeVerifier):
        where = "by other verifiers of the same server"
    lines.append(f"Version `{spec.version}`; reward {_range(spec)}; judged {where}.")
    lines.append(f"Verdicts: {', '.join(f'`{verdict}`' for verdict in spec.verdicts)}.\n")
    if spec.parameters:
        lines += ["| parameter | takes | default | |", "|---|---|---|---|"]
        lines += [_parameter(parameter) for parameter in spec.parameters]
        lines.append("")
    lines += ["| response | reference | verdict |", "|---|---|---|"]
    lines += [_example(example) for example in verifier.examples]
    return "\n".join(lines) + "\n"


def _profile(profile: Profile) -> str:
    spec = profile.spec
    tasks = ", ".join(f"`{task}`" for task in spec.tasks) or "none"
    return f"### {spec.name}\n\n{spec.description} Tasks: {tasks}; reward {_range(spec)}.\n"


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


def _example(example: Example) -> str:
    response = example.item.candidate.text
    if response is None:
        response = " / ".join(turn.content for turn in example.item.candidate.turns)
    return f"| {_code(response)} | {_code(_reference(example.item))} | `{example.verdict}` |"


def _reference(item: Item) -> str:
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
    if arguments not in (["write"], ["check"]):
        print(__doc__, file=sys.stderr)
        return 2
    wanted = render()
    if arguments == ["write"]:
        DOCUMENT.write_text(wanted, encoding="utf-8")
        return 0
    now = DOCUMENT.read_text(encoding="utf-8") if DOCUMENT.is_file() else ""
    if now != wanted:
        print(f"docs/{DOCUMENT.name} differs from the registry: run `{sys.argv[0]} write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
