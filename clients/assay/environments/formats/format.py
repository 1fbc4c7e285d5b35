"""How a policy writes calls of tools, and how it reads what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from assay.environments.types import EpisodeMessage, Reply


class Format(Protocol):
    """One way to write calls.

    Attributes:
        name: kebab-case.
        native: the chat template renders calls and their results; else `system` and `shown` do.
        offers: the chat template tells the policy of the tools; else `system` does.
        stops: a turn is over behind each of these texts.
        tags: texts that mean something in this format; in the text of anybody but the policy they
            are words.
    """

    name: str
    native: bool
    offers: bool
    stops: tuple[str, ...]
    tags: tuple[str, ...]

    def system(self, tools: Sequence[dict[str, Any]]) -> str:
        """What the policy is told of the tools, given their schemas; empty for nothing."""
        ...

    def read(self, text: str, *, truncated: bool = False) -> Reply:
        """A turn's calls, its answer, and whether it is void; what cannot be read stays a call.

        Takes any text, special tokens as their text, in time linear in it; never raises.
        """
        ...

    def shown(self, messages: Sequence[EpisodeMessage]) -> list[EpisodeMessage]:
        """The messages as a template without tools takes them: results become the user's words."""
        ...
