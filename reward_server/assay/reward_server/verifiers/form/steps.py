r"""`reasoning-steps`: whether a response shows steps: numbered lines, bullets, words of transition.

**What it judges.** The number of marks of a step, divided by `steps` (3) and at most 1. Marks are
"Step 1:", a line that begins with "1.", a line that begins with "- " or "* ", and the words
"First,", "Second,", "Next," and "Finally,".

**What could be gamed.** Everything: marks are cheap, and what stands between them is not read. Use
it with a small weight in the first steps of training, if at all.

**Differences.** open-r1's pattern finds "1." only at the start of the response and bullets only
after a first line; here every line counts alike, and a bullet needs white space after it, so that
"**bold**" and "--" are none.

**Limits.** English words, and four marks: steps in paragraphs or in another language are not seen.

**Source.** open-r1's `reasoning_steps_reward`. Linear in the response; up to 32,768
characters are judged in the server itself, more in a worker.
"""

from __future__ import annotations

import re

from assay.reward_server.domain import (
    Candidate,
    Component,
    Example,
    Item,
    Judgement,
    ParameterSpec,
    Verifier,
    VerifierSpec,
)

_MARK = re.compile(
    r"\bStep \d+:|^[ \t]*\d+\.[ \t]|^[ \t]*[-*][ \t]|\b(?:First|Second|Next|Finally),",
    re.MULTILINE,
)

_GLANCE_CHARS = 32_768

_SPEC = VerifierSpec(
    name="reasoning-steps",
    version="1",
    description="The response shows steps: numbered lines, bullets or words of transition.",
    tasks=("reasoning-steps",),
    min_reward=0.0,
    max_reward=1.0,
    verdicts=("steps", "few-steps", "no-steps"),
    parameters=(
        ParameterSpec(
            "steps", "int", 3, "How many marks earn the whole reward.", minimum=1, maximum=1000
        ),
    ),
    cacheable=False,  # judging again costs less than looking up
    needs_reference=False,
)


def count_steps(text: str) -> int:
    """How many marks of a step a text has."""
    return sum(1 for _ in _MARK.finditer(text))


class ReasoningStepsVerifier(Verifier):
    """Counts the marks of steps."""

    @property
    def spec(self) -> VerifierSpec:
        """What it is."""
        return _SPEC

    @property
    def examples(self) -> tuple[Example, ...]:
        """Three steps, one and none."""
        return (
            Example(_example("Step 1: add.\n2. carry\nFinally, write it down."), "steps"),
            Example(_example("First, add."), "few-steps"),
            Example(_example("42"), "no-steps"),
        )

    def glance(self, item: Item) -> Judgement | None:
        """Judges all but the longest responses at once."""
        return self.judge(item) if len(item.response()) <= _GLANCE_CHARS else None

    def judge(self, item: Item) -> Judgement:
        """Counts marks."""
        wanted = item.parameters["steps"]
        wanted = wanted if isinstance(wanted, int) else 1
        count = count_steps(item.response())
        score = min(1.0, count / wanted)
        return Judgement.composed(
            "steps" if score == 1.0 else "few-steps" if count else "no-steps",
            (Component("steps", score),),
            explanation=f"{count} marks of a step, {wanted} wanted",
        )


def _example(response: str) -> Item:
    return Item(Candidate(response), parameters=_SPEC.complete({}))
