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
    """A form of response; `{}` in the template is the answer's place, and is there once.

    Attributes:
        doubts: the same form with other things said beside the answer, such as how sure one is.
    """

    name: str
    template: str
    doubts: tuple[str, ...] = ()

    def wear(self, answer: str) -> str:
        """The response that gives this answer."""
        if self.name == "json":
            return json.dumps({"answer": answer}, ensure_ascii=False)
        return self.template.replace("{}", answer)

    @property
    def is_marked(self) -> bool:
        """Whether a mark, and no words, says which part is the answer."""
        return self.name not in ("prose", "label", "line", "bold", "worked")


PLAIN = Dress("plain", "{}")
PROSE = Dress("prose", "The answer is {}.")
DRESSES = (
    PLAIN,
    Dress("boxed", "\\boxed{{}}"),
    PROSE,
    Dress("label", "Answer: {}"),
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
_LEAST_SHOWN = 2
_LABEL = re.compile(r"(?<!\w)(['\"`])([A-Z][\w ]{0,24}[:=]) ?\1")
_MARKS = {
    "double brackets": "[[{}]]", "double square brackets": "[[{}]]", "square brackets": "[{}]",
    "braces": "{{}}", "curly braces": "{{}}", "curly brackets": "{{}}", "double braces": "{{{}}}",
    "parentheses": "({})", "round brackets": "({})", "angle brackets": "<{}>", "backticks": "`{}`",
    "quotes": '"{}"', "double quotes": '"{}"', "quotation marks": '"{}"', "asterisks": "*{}*",
    "double asterisks": "**{}**",
}  # fmt: skip
_BETWEEN = re.compile(
    rf"\b(?:in|within|between|inside) (?:a pair of )?({'|'.join(map(re.escape, _MARKS))})\b",
    re.IGNORECASE,
)
_TAGGED = re.compile(r"<(\w+)>[^<>]{0,200}</\1>")
_THOUGHTS = {"think", "thinking", "thought", "thoughts", "reasoning", "scratchpad", "reflection"}
_SURE = re.compile(r"confiden|\bsure|certain|probab|credence|likelihood", re.IGNORECASE)
_UNIT_SCALE = re.compile(r"\b(?:from|between) 0(?:\.0)? (?:to|and) 1(?:\.0)?\b(?!\.?\d)")
_GIVEN = "given"
UNKNOWN = (PLAIN, DRESSES[1], PROSE)
"""Worn where no right answer was accepted."""


def told_dress(prompts: Sequence[str]) -> Dress | None:
    """The form that most prompts show, such as 'The answer is (X).'; None where they show none."""
    counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for prompt in prompts:
        shown = _tagged_form(prompt) or _quoted_form(prompt) or _marked_form(prompt)
        if shown:
            counts[shown] += 1
    if not counts:
        return None
    (template, doubts), count = counts.most_common(1)[0]
    return Dress(TOLD, template, doubts) if 2 * count > len(prompts) else None


def given_dress(template: str) -> Dress:
    """The form that somebody says, with `{}` where the answer stands.

    Raises:
        ValueError: there is no such place, or more than one.
    """
    if template.count("{}") != 1:
        raise ValueError(f"the form {template!r} needs one '{{}}', where the answer stands")
    return Dress(_GIVEN, template)


def _marked_form(prompt: str) -> tuple[str, tuple[str, ...]] | None:
    """A quoted label that the answer follows, or brackets by their name, where there is one."""
    labels = {one[2] for one in _LABEL.finditer(prompt)}
    marks = {_MARKS[one[1].casefold()] for one in _BETWEEN.finditer(prompt)}
    if len(labels) == 1:
        return f"{labels.pop()} {{}}", ()
    return (marks.pop(), ()) if len(marks) == 1 else None


def _quoted_form(prompt: str) -> tuple[str, tuple[str, ...]] | None:
    """A quoted form with one place for the answer, and perhaps another for how sure one is."""
    found = [next(part for part in one.groups() if part is not None)
             for one in _QUOTED.finditer(prompt)]  # fmt: skip
    if not found or len(re.findall(_PLACE, found[0])) != 1 or len(found[0]) <= _LEAST_SHOWN:
        return None
    first = re.sub(_PLACE, "{}", found[0])
    sure = next((one for one in found[1:] if _SURE.search(one)), "")
    if len(re.findall(_PLACE, sure)) != 1:
        return first, ()
    low, some, high = ("0", "0.9", "1") if _UNIT_SCALE.search(prompt) else ("0", "90", "100")
    worn = [f"{first}\n{re.sub(_PLACE, one, sure)}" for one in (some, low, high)]
    return worn[0], tuple(worn[1:])


def _tagged_form(prompt: str) -> tuple[str, tuple[str, ...]] | None:
    """Tags of a name of their own around the answer, such as <tool_call>...</tool_call>."""
    names = [one[1] for one in _TAGGED.finditer(prompt) if one[1].casefold() not in _THOUGHTS]
    sure = [one for one in names if _SURE.search(one)]
    rest = [one for one in dict.fromkeys(names) if one not in sure]
    if len(rest) != 1 or (rest[0] == "answer" and not sure):
        return None
    before = f"<think>\n{_WORK}\n</think>\n" if "<think>" in prompt else ""
    form = f"{before}<{rest[0]}>{{}}</{rest[0]}>"
    if not sure:
        return form, ()
    low, some, high = ("0", "0.9", "1") if _UNIT_SCALE.search(prompt) else ("0", "90", "100")
    worn = [f"{form}\n<{sure[0]}>{one}</{sure[0]}>" for one in (some, low, high)]
    return worn[0], tuple(worn[1:])


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
