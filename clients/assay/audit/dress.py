r"""The forms in which a response gives its answer, and which of them a grader reads. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_WORK = "Let me work through this step by step, and check each step as I go."


@dataclass(frozen=True, slots=True)
class Dress:
    """A form of response; `{}` in the template is the answer's place, and is there once."""

    name: str
    template: str

    def wear(self, answer: str) -> str:
        """The response that gives this answer."""
        if self.name == "json":
            return json.dumps({"answer": answer}, ensure_ascii=False)
        return self.template.replace("{}", answer)

    @property
    def is_marked(self) -> bool:
        """Whether a mark, and no words, says which part is the answer."""
        return self.name not in ("prose", "line", "bold", "worked")


PLAIN = Dress("plain", "{}")
PROSE = Dress("prose", "The answer is {}.")
DRESSES = (
    PLAIN,
    Dress("boxed", "\\boxed{{}}"),
    PROSE,
    Dress("line", f"{_WORK}\n\nAnswer: {{}}"),
    Dress("hashes", f"{_WORK}\n#### {{}}"),
    Dress("tags", "<answer>{}</answer>"),
    Dress("thought", f"<think>\n{_WORK}\n</think>\n<answer>{{}}</answer>"),
    Dress("thought-boxed", f"<think>\n{_WORK}\n</think>\n\\boxed{{{{}}}}"),
    Dress("worked", f"{_WORK} Therefore, the final answer is $\\boxed{{{{}}}}$."),
    Dress("final", f"{_WORK}\n\nFinal Answer: The final answer is ${{}}$. I hope it is correct."),
    Dress("json", ""),
    Dress("bold", "The answer is **{}**."),
    Dress("bracketed", "({})"),
)
"""Tried in this order; of two that are accepted alike the first is worn."""
TOLD = "told"
_PLACE = r"(?<![\w\\])(?:[A-Z]|ANSWER|NUMBER|\.\.\.|N/D)(?!\w)"
_QUOTED = re.compile(
    rf"(?<!\w)'([^'\n]*?{_PLACE}[^'\n]*)'|\"([^\"\n]*?{_PLACE}[^\"\n]*)\"|`([^`\n]*?{_PLACE}[^`\n]*)`"
    r"|\bas (\S*[^\w\s.]\.\.\.[^\w\s]\S*?)(?=[.,;]?(?:\s|$))"
)
UNKNOWN = (PLAIN, DRESSES[1], PROSE)
"""Worn where no right answer was accepted."""


def told_dress(prompts: Sequence[str]) -> Dress | None:
    """The form that most prompts show, such as 'The answer is (X).'; None where they show none."""
    counts: Counter[str] = Counter()
    for prompt in prompts:
        found = next((one for one in _QUOTED.finditer(prompt)), None)
        if found is not None:
            shown = next(part for part in found.groups() if part is not None)
            places = re.findall(_PLACE, shown)
            if len(places) == 1 and len(shown) > len(places[0]) + 1:
                counts[re.sub(_PLACE, "{}", shown)] += 1
    if not counts:
        return None
    template, count = counts.most_common(1)[0]
    return Dress(TOLD, template) if 2 * count > len(prompts) else None


def dresses_read(
    accepted: Mapping[str, float], most: int = 2, told: Dress | None = None
) -> Sequence[Dress]:
    """The dresses that a grader reads best, by the share of right answers accepted in each.

    A second one must be read at least half as well as the first.
    """
    every = (told, *DRESSES) if told else DRESSES
    ranked = sorted(every, key=lambda one: -accepted.get(one.name, 0.0))
    best = accepted.get(ranked[0].name, 0.0)
    if best <= 0:
        return UNKNOWN
    marked = [one for one in ranked if accepted.get(one.name, 0.0) >= best / 2]
    chosen = marked[:1]
    # Another kind of reader than the first one's: words where that is a mark.
    chosen += [one for one in marked[1:] if one.is_marked != chosen[0].is_marked]
    chosen += [one for one in marked[1:] if one not in chosen]
    return chosen[:most]
