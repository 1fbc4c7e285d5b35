"""Formats by their names."""

from __future__ import annotations

from typing import Any

from assay.environments.formats.code import CodeFormat
from assay.environments.formats.format import Format
from assay.environments.formats.native import native_format
from assay.environments.formats.tagged import TaggedFormat
from assay.kit.errors import ConfigError
from assay.kit.hints import did_you_mean
from assay.kit.tool_calls.dialects import FORMATS

NAMES = ("auto", "tagged", "code", "native", *FORMATS)


def format_of(name: str, tokenizer: Any = None) -> Format:
    """The format of a name.

    Args:
        name: `tagged`, `code`; `native` for the chat template's own, or the dialect to read it in
            (`hermes`, `llama`, ...); `auto` for the template's own where it has one, else `tagged`.
        tokenizer: of transformers; None where there is none, such as behind an API of texts.

    Raises:
        ConfigError: there is no such format, or the chat template has none of its own.
    """
    if name not in NAMES:
        raise ConfigError(
            f"no format {name!r}{did_you_mean(name, NAMES)}; there are: {', '.join(NAMES)}"
        )
    if name == "tagged":
        return TaggedFormat()
    if name == "code":
        return CodeFormat()
    why = "there is no chat template"
    if getattr(tokenizer, "chat_template", None) is not None:
        found = native_format(tokenizer, name if name in FORMATS else "")
        if not isinstance(found, str):
            return found
        why = found
    if name == "auto":
        return TaggedFormat()
    raise ConfigError(f"format {name!r}: {why}; use the format tagged, or another template")
