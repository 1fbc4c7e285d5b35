"""Parameters of verifiers on a command line, `name=value`. Pure.

The verifier's description gives the type: `true` or `false`, a number, a text, or a list of texts,
written with commas or as a JSON list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from assay.clients.services import who_brings
from assay.clients.types import Parameter, ParameterInfo, ServerInfo, VerifierInfo
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean

_FUNCTION = re.compile(r"(?:([\w-]+)=)?([^=]+\.py)(?::(\w*))?")
_FUNCTION_SPEC = re.compile(r"((?:[\w-]+=)?[^=:]+\.py:\w+)(?::(.*))?", re.DOTALL)


def read_parameters(info: VerifierInfo, pairs: Sequence[str]) -> dict[str, Parameter]:
    """Reads `name=value` pairs by the verifier's types; the server checks their ranges.

    Raises:
        ConfigError: A pair has no "=", a name is unknown or occurs twice, or a value is of another
            type; the text says what to write.
    """
    known = {parameter.name: parameter for parameter in info.parameters}
    values: dict[str, Parameter] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip()
        if not equals:
            raise ConfigError(f"the parameter {pair!r} has no '='; write NAME=VALUE")
        if name not in known:
            names = ", ".join(known) or "none"
            raise ConfigError(f"{info.name!r} has no parameter {name!r}; it has: {names}")
        if name in values:
            raise ConfigError(f"the parameter {name!r} is given twice; give it once")
        values[name] = _value(known[name], text)
    return values


def split_spec(spec: str) -> tuple[str, list[str]]:
    """Splits `NAME` or `NAME:param=value,param=value` into the name and its pairs.

    The name may be a function in a file. A comma that no `name=` follows belongs to the value
    before it.
    """
    found = _FUNCTION_SPEC.fullmatch(spec)
    name, rest = (found[1], found[2] or "") if found else spec.partition(":")[::2]
    pairs: list[str] = []
    for part in rest.split(",") if rest else []:
        key = part.partition("=")
        if pairs and not (key[1] and key[0].strip().isidentifier()):
            pairs[-1] += f",{part}"
        else:
            pairs.append(part)
    return name.strip(), pairs


def split_function(verifier: str) -> tuple[str, list[str]]:
    """The name of a verifier, and the server's arguments that make it of a function in a file.

    `[NAME=]FILE.py:FUNCTION` is a function in a file; any other text is a name.

    Raises:
        ConfigError: A file is named and no function.
    """
    found = _FUNCTION.fullmatch(verifier)
    if found is None:
        return verifier, []
    name = found[1] or found[3]
    if not found[3]:
        raise ConfigError(f"--verifier {verifier}: write FILE.py:FUNCTION")
    return name, ["--verifier", verifier if found[1] else f"{name}={verifier}"]


def functions_among(verifiers: Iterable[str], target: str) -> tuple[list[str], list[str]]:
    """The names of verifiers, and the arguments with which a server started here has them all.

    Raises:
        ConfigError: A file is named for the server at `target`, or one without a function, or two
            have one name.
    """
    names: list[str] = []
    given: dict[str, list[str]] = {}
    for one in verifiers:
        name, arguments = split_function(one)
        if arguments and target:
            raise ConfigError(
                f"{one} is in a file of this machine; leave --target out, or start that server "
                "with --verifier and name the function here"
            )
        if given.setdefault(name, arguments) != arguments:
            raise ConfigError(f"two verifiers are called {name}; write NAME={one} for one of them")
        names.append(name)
    return names, [argument for arguments in given.values() for argument in arguments]


def find_verifier(server: ServerInfo, name: str) -> VerifierInfo:
    """The verifier or profile of this name.

    Raises:
        ConfigError: The server has none.
    """
    info = server.find(name)
    if info is None:
        names = ", ".join(verifier.name for verifier in server.verifiers)
        near = did_you_mean(name, (verifier.name for verifier in server.verifiers))
        raise ConfigError(
            f"no verifier has the name {name!r}{near}; this server has: {names}{who_brings(name)}"
        )
    return info


def _value(parameter: ParameterInfo, text: str) -> Parameter:
    name = parameter.name
    try:
        match parameter.type:
            case "bool":
                return {"true": True, "false": False}[text.strip().lower()]
            case "int":
                return int(text)
            case "float":
                return float(text)
            case "string_list":
                return _texts(text)
    except (ValueError, KeyError):
        words = {"bool": "true or false", "int": "a whole number", "float": "a number"}
        wanted = words.get(parameter.type, "texts with commas between them, or a list of JSON")
        raise ConfigError(f"the parameter {name!r} is {text!r}; write {wanted}") from None
    if parameter.allowed_values and text not in parameter.allowed_values:
        allowed = ", ".join(parameter.allowed_values)
        raise ConfigError(f"the parameter {name!r} is {text!r}; choose one of {allowed}")
    return text


def _texts(text: str) -> list[str]:
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    values = json.loads(text)
    if not all(isinstance(value, str) for value in values):
        raise ValueError("not texts")
    return list(values)
