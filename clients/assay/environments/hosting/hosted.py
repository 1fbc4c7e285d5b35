"""A hosted reward: called as TRL calls a function, a sample at a time, each in its own process."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from assay.environments.hosting.apart import apart
from assay.kit.errors import ConfigError
from assay.kit.faults import Unjudgeable
from assay.kit.reasons import Reason

TIMEOUT_S = 8.0
"""Of one sample; below the reward server's time-out of an item (10 s)."""
ChatMessage = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class HostedSample:
    """What is judged.

    Attributes:
        prompt: messages with "role" and "content".
        completion: the same, of the policy and of its tools.
        columns: of the row; the keys of a reference that is an object, else `reference`.
    """

    prompt: Sequence[ChatMessage]
    completion: Sequence[ChatMessage]
    columns: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What the policy said last."""
        own = [one for one in self.completion if one.get("role") == "assistant"]
        return str(own[-1].get("content") or "") if own else ""

    @property
    def turns(self) -> list[str]:
        """What the policy said, turn by turn."""
        own = [one for one in self.completion if one.get("role") == "assistant"]
        return [str(one.get("content") or "") for one in own]

    @property
    def question(self) -> str:
        """The prompt's last message."""
        return str(self.prompt[-1].get("content") or "") if self.prompt else ""


Score = Callable[[HostedSample], Any]
"""Returns a number, or awaits it; None is a fault, as is whatever else it does."""


class How(TypedDict, total=False):
    """How a reward is hosted; see `Hosted`."""

    name: str
    timeout_s: float
    deterministic: bool


class Hosted:
    """Somebody else's reward, as the reward server takes a function from a file.

    Attributes:
        name: what it is called in faults.
        description: of the verifier.
        deterministic: equal samples get equal rewards, and may come from the cache.
        conversational: it is given messages.

    Args:
        score: judges a sample.
        timeout_s: of each sample, positive.

    Raises:
        ConfigError: the time-out is none.
    """

    def __init__(
        self,
        score: Score,
        name: str,
        *,
        description: str = "",
        timeout_s: float = TIMEOUT_S,
        deterministic: bool = False,
    ) -> None:
        if not timeout_s > 0:
            raise ConfigError(f"timeout_s is {timeout_s!r}; pass a positive number of seconds")
        self.name = self.__name__ = name
        self.description = description or f"The reward {name}, which is hosted."
        self.deterministic = deterministic
        self.conversational = True
        self._score = score
        self._timeout_s = timeout_s

    def __call__(
        self, prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
    ) -> list[float]:
        """The rewards of samples, each by itself.

        Raises:
            Unjudgeable: a sample has none; the reason says why.
        """
        rewards = []
        for number, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
            own = {name: values[number] for name, values in columns.items()}
            sample = HostedSample(
                _messages(prompt, "user"), _messages(completion, "assistant"), own
            )
            act = functools.partial(_scored, self._score, sample, self.name)
            rewards.append(apart(act, self.name, self._timeout_s))
        return rewards


def hosted(score: Score, name: str, description: str, how: How) -> Hosted:
    """A reward, hosted under its own name where `how` has no other.

    Raises:
        ConfigError: `how` has a key that is none.
    """
    unknown = sorted(set(how) - set(How.__annotations__))
    if unknown:
        raise ConfigError(f"a hosted reward takes {', '.join(How.__annotations__)}, not {unknown}")
    return Hosted(
        score,
        how.get("name") or name,
        description=description,
        timeout_s=how.get("timeout_s", TIMEOUT_S),
        deterministic=how.get("deterministic", False),
    )


def _messages(said: Any, role: str) -> list[dict[str, Any]]:
    if isinstance(said, str):
        return [{"role": role, "content": said}] if said or role == "assistant" else []
    return [dict(message) for message in said]


def _scored(score: Score, sample: HostedSample, name: str) -> Any:
    """What the reward says of a sample, in the child.

    Raises:
        Unjudgeable: it says None.
    """
    value = score(sample)
    if inspect.isawaitable(value):
        value = asyncio.run(_awaited(value))
    if value is None:
        raise Unjudgeable(
            Reason.UNSUPPORTED_INPUT, f"{name!r} gave None: it does not judge this sample"
        )
    return value


async def _awaited(value: Any) -> Any:
    return await value


def name_of(value: Any) -> str:
    """What somebody's object is called."""
    return str(getattr(value, "__name__", "") or type(value).__name__)
