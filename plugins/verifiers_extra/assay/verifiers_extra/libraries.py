"""Libraries that an extra of this package brings."""

from __future__ import annotations

import importlib
from types import ModuleType

from assay.clients.services import VERIFIERS_EXTRA, how_to_add
from assay.reward_server import UNSUPPORTED_INPUT, Unjudgeable


def library(module: str, extra: str) -> ModuleType:
    """The module of a library that may be absent.

    Raises:
        Unjudgeable: UNSUPPORTED_INPUT; the text names the extra that brings it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        name = (error.name or module).partition(".")[0]
        text = f"{name} is not installed beside the reward server"
        raise Unjudgeable(
            UNSUPPORTED_INPUT, f"{text}; {how_to_add(extra, [VERIFIERS_EXTRA])}"
        ) from None
