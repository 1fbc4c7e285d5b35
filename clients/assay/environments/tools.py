"""Tools: their schemas, read off methods, and the check of what a policy calls them with.

The schema is JSON's, as chat templates and other trainers take it. pydantic makes it and reads the
arguments: "3" is an int where one is asked for, and what does not fit is refused in words that the
policy can act on.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
import warnings
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ConfigDict, Field, ValidationError, create_model

from assay.environments.environment import MARK, ToolError
from assay.environments.types import ToolCall
from assay.kit.errors import ConfigError
from assay.kit.json_text import NotJson, read_json

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):\s*$")
_ARGUMENT = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")

_CONFIG = ConfigDict(extra="forbid", protected_namespaces=())


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool.

    Attributes:
        description: the docstring's text before its sections.
        parameters: JSON schema of an object.
        reads: the pydantic model of the arguments.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    reads: type[Any]

    @property
    def schema(self) -> dict[str, Any]:
        """As chat templates and APIs take it: {"type": "function", "function": {...}}."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": dict(self.parameters),
            },
        }

    def arguments(self, call: ToolCall) -> dict[str, Any]:
        """The call's arguments, each of its parameter's type.

        Raises:
            ToolError: they do not fit; the text says which and why.
        """
        given = call.arguments
        if isinstance(given, str):
            try:
                given = json.loads(given or "{}")
            except (ValueError, RecursionError):
                raise ToolError(f"{self.name}: the arguments are no JSON: {given[:200]}") from None
        if given is not None and not isinstance(given, Mapping):
            raise ToolError(f"{self.name}: the arguments are no object of names and values")
        _check_texts(self.name, given)
        values = {str(name): value for name, value in (given or {}).items()}
        try:
            read = _fitting(self.reads, values)
        except ValidationError as error:
            whys = "; ".join(
                f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)[:4]
            )
            raise ToolError(f"{self.name}: {whys}") from None
        return {name: getattr(read, name) for name in type(read).model_fields}


def _fitting(reads: type[Any], values: Mapping[str, Any]) -> Any:
    """The arguments as the tool takes them: formats without types write a list as its text.

    Raises:
        ValidationError: they do not fit.
    """
    try:
        return reads(**values)
    except ValidationError as error:
        wrong = {one["loc"][0] for one in error.errors(include_url=False) if one["loc"]}
        texts = {name: value for name, value in values.items() if name in wrong}
        parsed = {name: read for name, text in texts.items() if (read := _container(text))}
        if not parsed:
            raise
        return reads(**{**values, **parsed})


def _container(text: object) -> Any:
    """The object or list that a text is the JSON of; None for others."""
    if not isinstance(text, str) or text[:1] not in ("[", "{"):
        return None
    try:
        return read_json(text)
    except NotJson:
        return None


def _check_texts(name: str, given: Any) -> None:
    """Refuses what no tool can pass on: half a surrogate pair, or a nesting without end.

    Raises:
        ToolError: in words for the policy.
    """
    try:
        json.dumps(given, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ToolError(f"{name}: the arguments hold half a surrogate pair") from None
    except RecursionError:
        raise ToolError(f"{name}: the arguments are nested too deeply") from None
    except (TypeError, ValueError):
        return  # not from JSON: a caller in Python


def tools_of(kind: type[Any]) -> Mapping[str, ToolSpec]:
    """The tools of an environment's class, by name, in the order of their definition.

    Raises:
        ConfigError: a parameter has no type, or one that JSON has not.
    """
    given: Any = kind
    return _tools_of(given)


@cache
def _tools_of(kind: Hashable) -> Mapping[str, ToolSpec]:
    assert isinstance(kind, type)  # noqa: S101  # as its caller says
    names: dict[str, None] = {}
    for base in reversed(kind.__mro__):
        for name, member in vars(base).items():
            if getattr(member, MARK, False):
                names[name] = None
            elif name in names:
                del names[name]  # overridden by what is no tool
    return {name: _tool(getattr(kind, name), kind) for name in names}


def _tool(method: Any, kind: type) -> ToolSpec:
    name = method.__name__
    text, described = _docstring(inspect.getdoc(method) or "")
    hints = typing.get_type_hints(method)
    fields: dict[str, Any] = {}
    for parameter in list(inspect.signature(method).parameters.values())[1:]:
        where = f"{kind.__name__}.{name}: the parameter {parameter.name!r}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigError(f"{where} stands for any number; a tool's parameters are named")
        if parameter.name not in hints:
            raise ConfigError(f"{where} has no type; write one, for the policy's schema")
        default = ... if parameter.default is parameter.empty else parameter.default
        about = described.get(parameter.name)
        fields[parameter.name] = (hints[parameter.name], Field(default, description=about))
    try:
        with warnings.catch_warnings():  # of names that pydantic's models have too
            warnings.simplefilter("ignore")
            reads = create_model(name, __config__=_CONFIG, **fields)
        parameters = reads.model_json_schema()
    except Exception as error:  # whatever a type brings with it
        raise ConfigError(
            f"{kind.__name__}.{name}: its parameters make no JSON schema "
            f"({type(error).__name__}: {str(error)[:200]}); use JSON's types"
        ) from error
    parameters.pop("title", None)
    for one in parameters.get("properties", {}).values():
        one.pop("title", None)
    return ToolSpec(name, text, parameters, reads)


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The text before the sections of a docstring in Google's style, and its "Args:"."""
    before: list[str] = []
    about: dict[str, str] = {}
    section = latest = ""
    for line in text.splitlines():
        if (found := _SECTION.match(line)) is not None:
            section = found.group(1)
        elif not section:
            before.append(line)
        elif section == "Args" and (found := _ARGUMENT.match(line.strip())) is not None:
            latest = found.group(1)
            about[latest] = found.group(2).strip()
        elif section == "Args" and latest and line.strip():
            about[latest] = f"{about[latest]} {line.strip()}"
    return "\n".join(before).strip(), about
