"""Versioned prompt templates: the shipped ones in this folder (*.toml), and the operator's own."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from assay.clients.judging.fencing import code_of
from assay.genrm.templates.fencing import fence, fence_steps, join
from assay.genrm.templates.letters import LETTERS
from assay.genrm.templates.template import (
    ANY_RUBRIC,
    LEAST_MASS,
    NEEDED,
    PLACE,
    POSSIBLE,
    VERDICTS,
    Kind,
    KnownCase,
    Style,
    Template,
    VerdictOption,
)
from assay.kit import toml_config
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

__all__ = [
    "KnownCase",
    "Template",
    "Templates",
    "VerdictOption",
    "code_of",
    "fence",
    "fence_steps",
    "join",
    "load_templates",
]

SHIPPED = Path(__file__).parent
EARLIER = SHIPPED / "earlier"
"""Earlier versions of shipped templates, for whoever asks for them by version."""
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class _Option:
    __pydantic_config__ = toml_config.STRICT

    value: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    text: Annotated[str, Field(max_length=64)] = ""
    also: tuple[Annotated[str, Field(min_length=1, max_length=64)], ...] = ()
    meaning: Annotated[str, Field(max_length=200)] = ""


@dataclass(frozen=True, slots=True)
class _Case:
    __pydantic_config__ = toml_config.STRICT

    question: Annotated[str, Field(min_length=1)]
    right: Annotated[str, Field(min_length=1)]
    wrong: Annotated[str, Field(min_length=1)]
    ground_truth: str = ""
    rubric: str = ANY_RUBRIC


@dataclass(frozen=True, slots=True)
class _Cases:
    __pydantic_config__ = toml_config.STRICT

    cases: Annotated[tuple[_Case, ...], Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class _File:
    """A template file; see Template for what the keys mean."""

    __pydantic_config__ = toml_config.STRICT

    name: Annotated[str, Field(min_length=1, max_length=64)]
    version: Annotated[int, Field(ge=1)]
    kind: Kind
    description: Annotated[str, Field(min_length=1)]
    user: Annotated[str, Field(min_length=1)]
    system: str = ""
    style: Style = "direct"
    prefill: str = ""
    max_tokens: Annotated[int, Field(ge=1)] = 1024
    least_mass: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = LEAST_MASS
    letters: bool = False
    verdicts: tuple[_Option, ...] = ()
    cases: tuple[_Case, ...] = ()


class Templates:
    """The templates that a service knows, by name and version."""

    def __init__(self, templates: Iterable[Template]) -> None:
        """Indexes them.

        Raises:
            ConfigError: two have the same name and version.
        """
        self._by_ref: dict[str, Template] = {}
        self._newest: dict[str, Template] = {}
        for template in templates:
            if template.ref in self._by_ref:
                raise ConfigError(f"template {template.ref} is there twice; give one a new version")
            self._by_ref[template.ref] = template
            newest = self._newest.get(template.name)
            if newest is None or newest.version < template.version:
                self._newest[template.name] = template

    def get(self, name_or_empty: str, kind: str, default: str, *also: str) -> Template:
        """The template "name" (its newest version) or "name@version"; `default` for an empty name.

        It must be for `kind`, or one of `also`.

        Raises:
            Unjudgeable: UNKNOWN_TEMPLATE, there is none, or it is for something else.
        """
        wanted = name_or_empty or default
        template = self._by_ref.get(wanted) or self._newest.get(wanted)
        if template is not None and template.kind in (kind, *also):
            return template
        fitting = ", ".join(one.ref for one in self.all() if one.kind in (kind, *also)) or "none"
        what = f"is a {template.kind} template" if template else "is not known"
        raise Unjudgeable(
            Reason.UNKNOWN_TEMPLATE,
            f"template {wanted[:80]!r} {what}; known {kind} templates: {fitting}",
        )

    def default(self, trained_on: str, kind: str, default: str) -> str:
        """What an empty name means to a judge: the template of this kind on which it was trained.

        One that is not known here stays, for `get` to refuse: another prompt is not what it learnt.
        """
        known = self._by_ref.get(trained_on)
        return trained_on if trained_on and (known is None or known.kind == kind) else default

    def of(self, ref: str) -> Template | None:
        """The template "name@version"."""
        return self._by_ref.get(ref)

    def is_newest(self, template: Template) -> bool:
        """Whether its name alone means this version."""
        return self._newest[template.name].version == template.version

    def all(self) -> tuple[Template, ...]:
        """All of them, sorted by name and version."""
        return tuple(sorted(self._by_ref.values(), key=lambda known: (known.name, known.version)))


def load_templates(folders: Sequence[Path] = ()) -> Templates:
    """The shipped templates and those of the operator's folders (`*.toml`).

    A name alone means its newest version, so an operator replaces a default by a higher version.

    Raises:
        ConfigError: a folder is not there, or a file is wrong; the text names it.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(f"template folder {folder} does not exist")
    paths = [
        path for folder in (SHIPPED, EARLIER, *folders) for path in sorted(folder.glob("*.toml"))
    ]
    return Templates(read_template(path) for path in paths)


def read_template(path: Path) -> Template:
    """The template of one file.

    Raises:
        ConfigError: it cannot be read, or is inconsistent; the text names the file.
    """
    tree = toml_config.read(path, examples="the shipped ones are in assay/genrm/templates")
    made = toml_config.build(_File, tree, origin=str(path))
    template = Template(
        name=made.name,
        version=made.version,
        kind=made.kind,
        description=made.description,
        system=made.system.strip("\n"),
        user=made.user.strip("\n"),
        verdicts=tuple(
            VerdictOption(one.text, one.value, one.also, one.meaning) for one in made.verdicts
        ),
        style=made.style,
        prefill=made.prefill,
        max_tokens=made.max_tokens,
        least_mass=made.least_mass,
        cases=_known(made.cases),
        letters=made.letters,
    )
    if mistake := _mistake(template):
        raise ConfigError(f"{path}: {mistake}")
    return template


@functools.cache
def shipped_cases() -> tuple[KnownCase, ...]:
    """The known answers on which models and templates are tested that bring none of their own."""
    return read_cases(SHIPPED / "known" / "cases.toml")


def read_cases(path: Path) -> tuple[KnownCase, ...]:
    """The known answers of a file.

    Raises:
        ConfigError: it cannot be read, or a case is wrong; the text names the file.
    """
    tree = toml_config.read(path, examples="assay/genrm/templates/known/cases.toml is one")
    return _known(toml_config.build(_Cases, tree, origin=str(path)).cases)


def _known(cases: Iterable[_Case]) -> tuple[KnownCase, ...]:
    return tuple(
        KnownCase(one.question, one.right, one.wrong, one.ground_truth, one.rubric) for one in cases
    )


def _mistake(template: Template) -> str:
    if not _NAME.fullmatch(template.name):
        return f"name {template.name!r} must be lower-case words joined by hyphens"
    if template.letters:
        return _mistake_in_places(template) or _mistake_in_letters(template)
    return _mistake_in_places(template) or _mistake_in_verdicts(template)


def _mistake_in_places(template: Template) -> str:
    needed, possible = NEEDED[template.kind], POSSIBLE[template.kind]
    lines = f"{template.system}\n{template.user}".split("\n")
    found = [match[1] for match in map(PLACE.fullmatch, lines) if match]
    if template.letters:
        found = [name for name in found if name != VERDICTS[1:-1]]
    for name in found:
        if name not in needed | possible:
            known = ", ".join(sorted(needed | possible))
            return f"a {template.kind} template has no place {{{name}}}; it may have: {known}"
        if found.count(name) > 1:
            return f"the place {{{name}}} is there more than once"
    for name in sorted(needed):
        if not template.places.get(name):
            return f"a {template.kind} template needs a line that is {{{name}}}"
    return ""


def _mistake_in_verdicts(template: Template) -> str:
    if template.kind in ("critique", "meta-critique", "evidence"):
        what = "evidence has" if template.kind == "evidence" else "critiques have"
        return f"{what} no verdicts to choose from" if template.verdicts else ""
    if any(option.meaning for option in template.verdicts):
        return "a verdict has a meaning where its letter is drawn: say letters = true"
    stripped = [option.strip() for option in template.options]
    if len(stripped) < 2 or len(set(stripped)) < len(stripped) or not all(stripped):
        return "verdicts must be at least two, and their texts must differ by more than space"
    if any(set("<>\n") & set(option) for option in template.spellings):
        return "the text of a verdict is one line without angle brackets"
    if len(set(template.spellings)) < len(template.spellings):
        return "a verdict's text stands twice among the verdicts and their other spellings"
    return _mistake_in_values(template)


def _mistake_in_letters(template: Template) -> str:
    if template.kind not in ("pointwise", "pairwise"):
        return f"a {template.kind} template draws no letters"
    if any(option.text or option.also for option in template.verdicts):
        return "letters are drawn: a verdict has a meaning, and no text"
    meanings = {option.meaning.strip() for option in template.verdicts}
    if not 2 <= len(meanings) == len(template.verdicts) <= len(LETTERS) or not all(meanings):
        return f"verdicts must be 2 to {len(LETTERS)}, each with a meaning of its own"
    if any("\n" in option.meaning for option in template.verdicts):
        return "the meaning of a verdict is one line"
    lines = template.user.split("\n")
    places = [at for at, line in enumerate(lines) if PLACE.fullmatch(line)]
    if lines.count(VERDICTS) != 1 or lines.index(VERDICTS) != places[-1]:
        return f"letters need one line that is {VERDICTS}, behind all places of `user`"
    return _mistake_in_values(template)


def _mistake_in_values(template: Template) -> str:
    return "verdicts must differ in value" if len(set(template.values)) < 2 else ""
