"""A service's settings, by one law for all: flag, environment, file of --config, default.

The first of these that says something counts; an empty variable says nothing. Keys of the file are
the flags' names. What nobody knows is an error at the start: a key of the file, and a variable with
the service's prefix. Those that Kubernetes and Docker make of a Service's name (ASSAY_REWARD_PORT=
tcp://..., ASSAY_REWARD_SERVICE_HOST) are passed over.

For commands made with click, which this package does without.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from assay.kit.errors import AssayError, ConfigError
from assay.kit.flags import Flag, Option, add_flags
from assay.kit.hints import did_you_mean
from assay.kit.toml_files import in_toml, read

LAW = "A flag counts before the environment, that before the file, that before the default."
_SOURCES = {"COMMANDLINE": "flag", "ENVIRONMENT": "environment", "DEFAULT_MAP": "file"}
_LINK = re.compile(
    r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?"
    r"|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_LINK_VALUE = re.compile(r"(?:tcp|udp|sctp)://\S+")
_OF_COMPOSE = ("MEMORY",)  # what a container may take, in compose.yaml


def settings_flags(
    option: Option, path: object, refusal: type[Exception], title: str, secrets: Sequence[str]
) -> Callable[[Any], Any]:
    """A decorator with --config and --print-config, which checks the environment as well.

    Args:
        option: `click.option`.
        path: the type of a flag that names a file.
        refusal: `click.BadParameter`.
        title: the service, as its messages call it.
        secrets: variables beside the flags, without the prefix, as "TOKEN".
    """

    def prepare(context: Any, _: object, file: Path | None) -> None:
        try:
            _check_environment(context, title, secrets)
            if file is not None:
                context.default_map = _read(context, file, refusal)
        except ConfigError as error:
            fail(title, error)
        context.meta["assay.settings"] = file, secrets

    flags: list[Flag] = [
        (
            "--config",
            {
                "type": path,
                "is_eager": True,
                "expose_value": False,
                "callback": prepare,
                "help": f"TOML file of settings, by the names of the flags. {LAW}",
            },
        ),
        (
            "--print-config",
            {
                "is_flag": True,
                "expose_value": False,
                "allow_from_autoenv": False,
                "callback": lambda context, _, asked: context.meta.update({"assay.print": asked}),
                "help": "Print the settings in force, as such a file, and exit.",
            },
        ),
    ]
    return add_flags(option, flags)


def print_asked(context: Any, title: str) -> bool:
    """Prints the settings in force where --print-config is given; then the process is to end."""
    asked = bool(context.meta["assay.print"])
    if asked:
        sys.stdout.write(in_force(context, title))
        sys.stdout.flush()
    return asked


def in_force(context: Any, title: str) -> str:
    """The settings as TOML that --config takes, with comments on where they are from.

    Tokens are no settings: that one is set is said, and not what it is.
    """
    file, secrets = context.meta["assay.settings"]
    lines = [f"# Settings of {title}. {LAW}"]
    lines += [f"# file: {str(file)!r}"] if file else []
    for one in _parameters(context):
        value = _plain(context.params[one.name])
        source = _source(context, one)
        if value is None:
            lines.append(f"# {_key(one)} is not set")
        else:
            lines.append(f"{_key(one)} = {in_toml(value)}" + (f"  # {source}" if source else ""))
    prefix = f"{context.auto_envvar_prefix}_"
    lines += [f"# {prefix}{one} is set" for one in secrets if os.environ.get(prefix + one)]
    return "\n".join(lines) + "\n"


def fail(title: str, error: AssayError, context: Any = None) -> NoReturn:
    """Ends the process with a line on stderr, and 1.

    Where the message begins with a flag that was not given as one, it says what set it.
    """
    text = str(error)
    flag = re.match(r"--([a-z0-9-]+)", text)
    for one in _parameters(context) if context is not None and flag else ():
        if flag and _key(one) == flag[1]:
            text += _blame(context, one)
    sys.stderr.write(f"assay {title}: {text}\n")
    sys.exit(1)


def _blame(context: Any, one: Any) -> str:
    source = _source(context, one)
    if source == "environment":
        return f" (set by {_variable(context, one)})"
    if source == "file":
        return f" (set by {_key(one)} in {context.meta['assay.settings'][0]})"
    return ""


def _source(context: Any, one: Any) -> str:
    """Who set it: "flag", "environment", "file"; empty for nobody."""
    return _SOURCES.get(context.get_parameter_source(one.name).name, "")


def _parameters(context: Any) -> Iterator[Any]:
    """The flags that are settings."""
    return (one for one in context.command.params if one.expose_value)


def _key(one: Any) -> str:
    """The name in a file: of the flag, without what turns it off."""
    return str(one.opts[0]).lstrip("-")


def _variable(context: Any, one: Any) -> str:
    return str(one.envvar or f"{context.auto_envvar_prefix}_{one.name.upper()}")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return str(value) if isinstance(value, Path) else value


def _check_environment(context: Any, title: str, secrets: Sequence[str]) -> None:
    """Drops the variables that are links to a Service.

    Raises:
        ConfigError: one with our prefix is no setting. The text holds no value.
    """
    prefix = f"{context.auto_envvar_prefix}_"
    known = {_variable(context, one) for one in _parameters(context)}
    known |= {prefix + one for one in ("CONFIG", *secrets, *_OF_COMPOSE)}
    ours = {name: text for name, text in os.environ.items() if name.startswith(prefix) and text}
    for name, text in ours.items():
        if name.endswith("PORT") and _LINK_VALUE.fullmatch(text):
            del os.environ[name]
    unknown = sorted(
        name
        for name in ours
        if name not in known
        and name in os.environ
        and not _LINK.fullmatch(name.removeprefix(prefix))
    )
    if unknown:
        told = ", ".join(f"{name}{did_you_mean(name, known)}" for name in unknown)
        raise ConfigError(f"the environment holds what is no setting of {title}: {told}")


def _read(context: Any, file: Path, refusal: type[Exception]) -> dict[str, Any]:
    """The settings of a file, by the names of click's parameters.

    Raises:
        ConfigError: the file cannot be read, or a key or a value in it is wrong.
    """
    known = {_key(one): one for one in _parameters(context)}
    found: dict[str, Any] = {}
    for written, value in read(file, examples="--print-config prints one").items():
        key = written.replace("_", "-")
        if key not in known:
            kind = "table" if isinstance(value, Mapping) else "setting"
            raise ConfigError(f"{file}: no {kind} is named {written[:80]!r}"
                              f"{did_you_mean(key, known)}")  # fmt: skip
        one = known[key]
        if one.name in found:
            raise ConfigError(f"{file}: {key} stands there twice")
        expected = _expected(one)
        if not _fits(expected, value):
            raise ConfigError(f"{file}: {key} must be {expected}, not {_shown(value)}")
        try:
            one.type_cast_value(context, value)
        except refusal as error:
            raise ConfigError(f"{file}: {key}: {getattr(error, 'message', error)}") from error
        found[one.name] = value
    return found


def _expected(one: Any) -> str:
    if one.multiple:
        return "an array of texts"
    if one.is_flag:
        return "true or false"
    kind = one.type.name.split()[0]
    return {"integer": "a whole number", "float": "a number"}.get(kind, "a text")


def _fits(expected: str, value: object) -> bool:
    if expected == "an array of texts":
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if expected == "true or false":
        return isinstance(value, bool)
    if expected == "a text":
        return isinstance(value, str)
    number = int if expected == "a whole number" else (int, float)
    return isinstance(value, number) and not isinstance(value, bool)


def _shown(value: object) -> str:
    kinds = {bool: "true or false", str: "a text", list: "an array", dict: "a table"}
    return kinds.get(type(value), f"a {type(value).__name__}")
