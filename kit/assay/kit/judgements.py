"""What a verifier finds: a judgement, its components, and rewards for spans of the response. Pure.

Verifiers make them and clients read them; `assay.kit.faults` has what there is instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SPENT = ("judge-tokens", "judge-seconds", "judge-cost")
"""Components of weight 0 that say what a model's judgement took.

Tokens that were read anew or written, seconds of the engine, and money in the currency of genrm's
prices.
"""


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a reward. Unless the verifier says otherwise, reward = sum of weight * score.

    Attributes:
        name: kebab-case.
        score: the raw number, finite.
        weight: its weight in the reward, finite.
    """

    name: str
    score: float
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Span:
    """A reward for the code points `start <= i < end` of the response.

    Attributes:
        start: first code point, from 0.
        end: one past the last code point.
        reward: the reward of this part, finite.
        label: what the part is: "step", "line", "turn", ...
        turn_index: the turn it falls on, from 0; 0 for a candidate of one text.
    """

    start: int
    end: int
    reward: float
    label: str = ""
    turn_index: int = 0


@dataclass(frozen=True, slots=True)
class Hearing:
    """What one verifier said of a response.

    Attributes:
        verifier: who.
        version: that verifier's version.
        verdict: the category, kebab-case.
        reward: finite, before a profile shapes it.
    """

    verifier: str
    version: str
    verdict: str
    reward: float


@dataclass(frozen=True, slots=True)
class Appeal:
    """A verdict that a second verifier was asked about; reward.proto documents the fields.

    Attributes:
        component: of the profile.
        first: of the component's own verifier.
        second: it counts. None, inside a server alone: the item was not drawn.
        drawn: asked by chance, not for its verdict.
        probability: the chance that an item with this first verdict is asked about, above 0 where
            one was asked, at most 1.
    """

    component: str
    first: Hearing
    second: Hearing | None
    drawn: bool
    probability: float

    @classmethod
    def from_plain(cls, said: Mapping[str, Any] | None) -> Appeal | None:
        """The appeal of its `dataclasses.asdict`; None for None.

        Raises:
            KeyError, TypeError: it is something else.
        """
        if said is None:
            return None
        first, second = (
            None if said[name] is None else Hearing(**said[name]) for name in ("first", "second")
        )
        if first is None:
            raise TypeError("an appeal has a first hearing")
        return cls(said["component"], first, second, said["drawn"], said["probability"])


@dataclass(frozen=True, slots=True)
class Judgement:
    """An opinion about a response.

    Attributes:
        reward: the number that trains, finite; inside the verifier's stated range.
        verdict: the category, kebab-case: "correct", "incorrect", "unparsed", ...
        components: what the reward is made of; a verifier gives at least one.
        spans: rewards for parts of the response, sorted, without overlap.
        extracted_answer: the answer as found in the response; None when none was found or looked
            for.
        explanation: why, in one line of at most 1,000 characters, for people. It may hold the
            reference: never show it to a policy.
        verifier: who judged. The server fills it and `version` in; a verifier leaves them empty.
        version: that verifier's version.
        suspicions: signs that the response games the verifier, kebab-case.
        appeal: the second opinion that a profile asked for; verdict and reward follow from it.

    Raises:
        ValueError: a number is not finite.
    """

    reward: float
    verdict: str
    components: tuple[Component, ...] = ()
    spans: tuple[Span, ...] = ()
    extracted_answer: str | None = None
    explanation: str = ""
    verifier: str = ""
    version: str = ""
    suspicions: tuple[str, ...] = ()
    appeal: Appeal | None = None

    def __post_init__(self) -> None:
        finite = math.isfinite(self.reward)
        if self.appeal is not None:
            said = (self.appeal.first, self.appeal.second)
            finite = finite and all(math.isfinite(one.reward) for one in said if one is not None)
        for part in self.components:
            finite = finite and math.isfinite(part.score) and math.isfinite(part.weight)
        for span in self.spans:
            finite = finite and math.isfinite(span.reward)
        if not finite:
            raise ValueError(
                f"a number of the judgement of {self.verifier or 'a verifier'!r} is not finite"
            )

    @classmethod
    def composed(
        cls,
        verdict: str,
        components: tuple[Component, ...],
        *,
        extracted_answer: str | None = None,
        explanation: str = "",
        suspicions: tuple[str, ...] = (),
    ) -> Judgement:
        """A judgement whose reward is the sum of weight times score, in the components' order."""
        reward = 0.0
        for component in components:
            reward += component.weight * component.score
        return cls(
            reward,
            verdict,
            components,
            extracted_answer=extracted_answer,
            explanation=explanation,
            suspicions=suspicions,
        )
