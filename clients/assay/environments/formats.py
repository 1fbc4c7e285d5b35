"""How a policy writes calls of tools, and how it reads what they answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from assay.environments.types import EpisodeMessage, Reply


class Format(Protocol):
    """One way to write calls.

    Attributes:
        name: kebab-case.
        native: the chat template renders the tools and their results; else `system` and `shown` do.
        stops: a turn is over behind each of these texts.
    """

    name: str
    native: bool
    stops: tuple[str, ...]

    def system(self, tools: Sequence[dict[str, Any]]) -> str:
        """What the policy is told of the tools, given their schemas; empty for nothing."""
        ...

    def read(self, text: str, *, truncated: bool = False) -> Reply:
        """A turn's calls, its answer, and whether it is void; what cannot be read stays a call."""
        ...

    def shown(self, messages: Sequence[EpisodeMessage]) -> list[EpisodeMessage]:
        """The messages as a template without tools takes them: results become the user's words."""
        ...
