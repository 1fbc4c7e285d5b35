r"""`format`: whether a response has a named structure; how much of it, for `tag-count`.

**What it judges**, by the parameter `structure`:

| structure | well-formed is |
|---|---|
| think-answer | `<think>T</think><answer>A</answer>` and nothing else; four tags, each once |
| think | `<think>T</think>R`; both tags once, the first at the very start |
| answer | one `<answer>A</answer>`, text around it allowed |
| boxed | one `\boxed{A}` with balanced braces, text around it allowed |
| code-fence | one fenced block, of the language of `language` if that is set, and closed |
| json | a JSON object, bare or in one fence |
| react | `Thought: T`, then `Action: N` and `Action Input: I`, or `Final Answer: A` |
| tag-count | partial credit: 0.25 for each of the four tags of think-answer that occurs once |

T, R, A, N and I must not be blank. White space around the whole and between the parts is free,
unless `newlines` asks for each tag on a line of its own, the layout of open-r1. `opened` is for
chat templates that end the prompt with `<think>`: a missing opening tag then counts as written. For
`react` a line `Observation:` is malformed: the environment writes those.

**What could be gamed.** Tags around nothing worth reading: use it as a gate or with a small weight.
What graders of this kind miss is malformed here: several blocks, nested tags, text after the answer
(open-r1's pattern matches at any line end), a second box. `tag-count` rewards the four tags in any
order and place, as its source does; prefer think-answer once a policy has found the tags. Tags
inside a code block count as tags.

**Limits.** JSON of more than 262,144 characters is not read and is malformed. Linear in the
response; the server itself judges up to 65,536 characters, a worker more.

**Sources.** DeepSeek-R1 (arXiv 2501.12948), section 2.2.2, for the structure; open-r1's
`format_reward` and `tag_count_reward` (with `newlines` set); ReAct (arXiv 2210.03629).

Measured: 57 responses with the structure that they have or lack, and the law that any text is all
or nothing (`tests/unit/test_verifier_form.py`): no difference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from assay.reward_server.domain import (
    Component,
    Judgement,
    VerifierItem,
)
from assay.reward_server.functions import OneOf, verifier

MAX_JSON_CHARS = 262_144
_SHOWN_CHARS = 200
_GLANCE_CHARS = 65_536
_TAGS = ("<think>", "</think>", "<answer>", "</answer>")
_LINED_TAGS = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
_FENCE = re.compile(r"^ {0,3}```[ \t]*+([^\s`]*+)[^\n`]*+$", re.MULTILINE)
_LABEL = re.compile(r"^[ \t]*(Thought|Action|Action Input|Observation|Final Answer):", re.MULTILINE)
_REACT = (("Thought", "Action", "Action Input"), ("Thought", "Final Answer"))


@dataclass(frozen=True, slots=True)
class StructureCheck:
    """How well a response has a structure.

    Attributes:
        trouble: why the response is malformed; empty when it is not.
        answer: the text inside, where the structure has an answer.
        share: the share of the structure that is there, 0 to 1.
    """

    trouble: str = ""
    answer: str | None = None
    share: float = 0.0

    @classmethod
    def good(cls, answer: str | None = None) -> StructureCheck:
        """A well-formed response."""
        return cls("", answer, 1.0)


def think_answer(text: str, *, newlines: bool = False) -> StructureCheck:
    """A thought and an answer, each in its tags, and nothing else."""
    text = text.strip()
    trouble = _tag_trouble(text, _TAGS)
    if trouble:
        return StructureCheck(trouble)
    opened, closed, begun, ended = (text.index(tag) for tag in _TAGS)
    if opened or not text.endswith("</answer>"):
        return StructureCheck("there is text before <think> or after </answer>")
    if text[closed + len("</think>") : begun].strip():
        return StructureCheck("there is text between </think> and <answer>")
    if newlines and not all(tag in text for tag in _LINED_TAGS):
        return StructureCheck("a tag is not on a line of its own")
    thought = text[len("<think>") : closed]
    answer = text[begun + len("<answer>") : ended]
    if not thought.strip() or not answer.strip():
        return StructureCheck("the thought or the answer is blank")
    return StructureCheck.good(answer.strip())


def think(text: str, *, newlines: bool = False) -> StructureCheck:
    """A thought in its tags, then a response."""
    text = text.strip()
    trouble = _tag_trouble(text, _TAGS[:2])
    if trouble:
        return StructureCheck(trouble)
    closed = text.index("</think>")
    if not text.startswith("<think>"):
        return StructureCheck("there is text before <think>")
    if newlines and not all(tag in text for tag in _LINED_TAGS[:2]):
        return StructureCheck("a tag is not on a line of its own")
    rest = text[closed + len("</think>") :].strip()
    if not text[len("<think>") : closed].strip() or not rest:
        return StructureCheck("the thought or the response after it is blank")
    return StructureCheck.good()


def answer(text: str, *, newlines: bool = False) -> StructureCheck:
    """One answer in its tags, anywhere."""
    trouble = _tag_trouble(text, _TAGS[2:])
    if trouble:
        return StructureCheck(trouble)
    if newlines and not all(tag in f"\n{text}" for tag in _LINED_TAGS[2:]):
        return StructureCheck("a tag is not on a line of its own")
    inside = text[text.index("<answer>") + len("<answer>") : text.index("</answer>")]
    return (
        StructureCheck.good(inside.strip())
        if inside.strip()
        else StructureCheck("the answer is blank")
    )


def boxed(text: str) -> StructureCheck:
    r"""One \boxed{...} with balanced braces, anywhere."""
    count = text.count("\\boxed")
    if count != 1:
        return StructureCheck(f"there are {count} \\boxed, not one")
    rest = text[text.index("\\boxed") + len("\\boxed") :].lstrip(" ")
    if not rest.startswith("{"):
        return StructureCheck("\\boxed is not followed by a brace")
    depth = 0
    for found in re.finditer(r"\\.|[{}]", rest, re.DOTALL):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if depth == 0 and found.group() == "}":
            inside = rest[1 : found.start()].strip()
            return StructureCheck.good(inside) if inside else StructureCheck("the box is blank")
    return StructureCheck("the box is not closed")


def code_fence(text: str, *, language: str = "") -> StructureCheck:
    """One closed fenced block, of a language if one is asked for."""
    fences = list(_FENCE.finditer(text))
    if len(fences) != 2:
        return StructureCheck(f"there are {len(fences)} fences, not the two of one block")
    opening, closing = fences
    if closing.group(1):
        return StructureCheck("the closing fence names a language")
    if language and opening.group(1).lower() != language.lower():
        return StructureCheck(f"the block is not marked as {language[:40]!r}")
    inside = text[opening.end() : closing.start()]
    return (
        StructureCheck.good(inside.strip())
        if inside.strip()
        else StructureCheck("the block is empty")
    )


def json_object(text: str) -> StructureCheck:
    """A JSON object, bare or in one fence around everything."""
    text = text.strip()
    if text.startswith("```") and text.endswith("```"):
        text = text.partition("\n")[2].removesuffix("```").strip()
    if len(text) > MAX_JSON_CHARS:
        return StructureCheck(f"it is longer than {MAX_JSON_CHARS} characters")
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        return StructureCheck(f"it is not JSON: {str(error)[:100]}")
    return (
        StructureCheck.good(text)
        if isinstance(value, dict)
        else StructureCheck("it is JSON, but no object")
    )


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def react(text: str) -> StructureCheck:
    """One step of ReAct: a thought, then an action with its input or the final answer."""
    found = list(_LABEL.finditer(text))
    labels = tuple(match.group(1) for match in found)
    if labels not in _REACT:
        return StructureCheck("it is not Thought, Action, Action Input nor Thought, Final Answer")
    if text[: found[0].start()].strip():
        return StructureCheck("there is text before the thought")
    ends = [match.start() for match in found[1:]] + [len(text)]
    parts = [text[match.end() : end].strip() for match, end in zip(found, ends, strict=True)]
    if not all(parts):
        return StructureCheck("a part is blank")
    return StructureCheck.good(parts[-1] if labels[-1] == "Final Answer" else None)


def tag_count(text: str, *, newlines: bool = False) -> StructureCheck:
    """A quarter for each of the four tags that occurs once (open-r1)."""
    once = [text.count(tag) == 1 for tag in (_LINED_TAGS if newlines else _TAGS)]
    missing = [tag for tag, is_once in zip(_TAGS, once, strict=True) if not is_once]
    return StructureCheck(f"not once: {', '.join(missing)}" if missing else "", None, sum(once) / 4)


def _tag_trouble(text: str, tags: tuple[str, ...]) -> str:
    for tag in tags:
        count = text.count(tag)
        if count != 1:
            return f"{tag} occurs {count} times, not once"
    places = [text.index(tag) for tag in tags]
    return "" if places == sorted(places) else "the tags are in the wrong order"


_STRUCTURES: dict[str, Callable[[str, bool, str], StructureCheck]] = {
    "think-answer": lambda text, newlines, _: think_answer(text, newlines=newlines),
    "think": lambda text, newlines, _: think(text, newlines=newlines),
    "answer": lambda text, newlines, _: answer(text, newlines=newlines),
    "boxed": lambda text, _, __: boxed(text),
    "code-fence": lambda text, _, language: code_fence(text, language=language),
    "json": lambda text, _, __: json_object(text),
    "react": lambda text, _, __: react(text),
    "tag-count": lambda text, newlines, _: tag_count(text, newlines=newlines),
}


@verifier(
    "format",
    verdicts=("well-formed", "partly-formed", "malformed"),
    description="The response has a named structure: thought and answer tags, a box, a code "
    "block, JSON or ReAct.",
    needs_reference=False,
    cacheable=False,
    glance=_GLANCE_CHARS,
)
def well_formed(
    item: VerifierItem,
    *,
    structure: Annotated[
        str, OneOf(tuple(_STRUCTURES)), "The structure that is asked for."
    ] = "think-answer",
    newlines: Annotated[
        bool, "Whether each tag stands on a line of its own; for the structures of tags."
    ] = False,
    opened: Annotated[
        bool, "Whether the prompt ends with <think>, which the response then need not hold."
    ] = False,
    language: Annotated[str, "What a code fence must be marked as; empty for anything."] = "",
) -> Judgement:
    """Compares the response with the structure."""
    text = item.response()
    if opened and not text.lstrip().startswith("<think>"):
        text = f"<think>\n{text}"
    form = _STRUCTURES[structure](text, newlines, language)
    verdict = "malformed"
    if form.share:
        verdict = "well-formed" if form.share == 1.0 else "partly-formed"
    shown = None if form.answer is None else form.answer[:_SHOWN_CHARS]
    return Judgement.composed(
        verdict,
        (Component("form", form.share),),
        extracted_answer=shown,
        explanation=form.trouble or f"is {structure}",
    )
