r"""`ifeval`: whether a response follows verifiable instructions.

**What it judges.** Each instruction of the reference by itself: the 25 types of IFEval (Zhou et
al., arXiv 2311.07911), the 58 of IFBench and the 29 that IF-RLVR trains on besides IFEval's (both
Pyatkin et al., arXiv 2507.02833), whose ids do not overlap. The reference is an object as IFEval
and IFBench have it, `{"instruction_id_list": ["punctuation:no_comma", ...], "kwargs": [{}, ...]}`,
or that of IF-RLVR, `[{"instruction_id": [...], "kwargs": [null, ...]}]`, which may also be a text,
of JSON or of a Python literal as its data sets write it; null arguments count as absent. There is
one component per instruction, `punctuation-no-comma`, of weight 0, and the component `followed`,
which is the reward: 1 if all are followed (`scoring` = all, IFEval's prompt-level accuracy) or the
share of them (fraction, its instruction-level accuracy and IF-RLVR's reward).

**Strict and loose.** `mode` = strict checks the response as it is. `loose` follows IFEval, section
2.3: any of eight forms of the response may follow the instruction: with and without asterisks;
whole, without the first line, without the last, without both. With `skip_thought` only what follows
the last `</think>` is judged, without the tags `<answer>` and `</answer>` and the white space
around it, as IF-RLVR's training code does, so that a thought can neither satisfy nor break an
instruction.

**What a policy could game.** The checks see form alone: a response that says nothing can satisfy
all of them, so pair this with a judge of content. Loose is easier to satisfy in unintended ways. A
text without letters passes for every language, as in the reference implementation. Counting
instructions reward padding; pair them with `repetition`. Some of IF-RLVR's ask little: "a" is a
palindrome, and a single word has no neighbour.

**Differences from the reference implementations.**

1. Missing and malformed arguments are UNUSABLE_REFERENCE; the originals draw a random value, also
   for a number that is 0, which here is 0 or a fault. A letter of `keywords:letter_frequency` that
   is not one of a to z is counted as it is, where the original draws a random letter.
2. Keywords, forbidden words, phrases, section marks and postscript marks are literal text, compared
   in lower case; the originals take them for regular expressions.
3. Sentences: NLTK's trained Punkt parameters cannot be installed from a package index; see
   `sentences` for the rules in their place. Tokens are those of NLTK; `\w+` ends at a combining
   mark, as Python has it, which with NLTK 3.10.4 does not end a word.
   IF-RLVR's other splitter is kept, but for texts with its own marks, "<stop>" and "<prd>".
4. Language: langdetect with its seed fixed, on the first 20,000 characters; the originals leave it
   to chance.
5. `words:start_verb` knows verbs by a list and by their endings instead of NLTK's tagger.
6. Where the originals raise on a response (JSON nested too deeply, a blank one), the instruction is
   not followed.

Kept, so that figures compare: `copy_span_idx` ends before `n_end`, though its prompt says
"including"; `counting_composition` and `count_unique` count punctuation as words;
`keyword_specific_position` and `exclude_word_harder` mind the case. NeMo Gym's older copy asks of
`repeat_phrase` one changed word in the last repetition only; here, as in open-instruct, in each.

**Known limits.** English rules for sentences, words and verbs, whatever language the response is
in; langdetect is unsure of short texts.

**Measured.** On the 331 instructions of IFBench's sample responses, strict and loose: 656 of 662
official verdicts. On the 54 instructions of IF-RLVR's training set beside its code, its Punkt
sentences replaced by ours: no difference in 20,000 mutated responses for each set of arguments.

**Cost.** Linear in the response. The server itself judges short responses (at most 16,384
characters) whose instructions ask no library, a worker the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from assay.reward_server import Component, Judgement, VerifierItem, verifier
from assay.verifiers_extra.instructions.table import (
    SLOW,
    SPLITTING,
    Instruction,
    document,
    read,
)
from assay.verifiers_extra.languages import detection

_GLANCE_CHARS = 16_384
_GLANCE_WORK = 100_000
_GLANCE_SENTENCES = 200
_SHOWN = 12


def _glance(item: VerifierItem, *, mode: str, scoring: str, skip_thought: bool) -> Judgement | None:
    instructions = read(document(item))
    response = item.response()
    if any(instruction.identity in SLOW for instruction in instructions):
        return None
    tries = 1 if mode == "strict" else 8
    splits = tries * sum(instruction.identity in SPLITTING for instruction in instructions)
    is_long = len(response) > min(_GLANCE_CHARS, _GLANCE_WORK // (tries * len(instructions)))
    if is_long or splits * sum(map(response.count, ".?!")) > _GLANCE_SENTENCES:
        return None
    return _judged(item, instructions, mode, scoring, skip_thought=skip_thought)


@verifier(
    "ifeval",
    tasks=("ifeval", "ifbench", "if-rlvr", "instruction-following"),
    verdicts=("followed", "partly-followed", "not-followed"),
    description="The response follows verifiable instructions: 25 types of IFEval, 58 of IFBench "
    "and 29 of IF-RLVR.",
    version="2",
    lazy=True,
    prepare=detection.load,
    glance=_glance,
)
def ifeval(
    item: VerifierItem,
    *,
    mode: Annotated[
        Literal["strict", "loose"],
        "Check the response as it is, or any of eight forms of it (without asterisks, first or "
        "last line).",
    ] = "strict",
    scoring: Annotated[
        Literal["all", "fraction"],
        "1 only if all instructions are followed, or the fraction of them that are.",
    ] = "all",
    skip_thought: Annotated[
        bool, "Whether to judge only what follows the last </think>, without <answer> tags."
    ] = False,
) -> Judgement:
    """Checks every instruction of the reference.

    Raises:
        Unjudgeable: UNUSABLE_REFERENCE for instructions that are unknown or malformed.
    """
    return _judged(item, read(document(item)), mode, scoring, skip_thought=skip_thought)


def forms(response: str, mode: str) -> tuple[str, ...]:
    """The forms of a response of which one has to follow an instruction.

    Args:
        response: the policy's text.
        mode: "strict" for the response alone, "loose" for the eight of IFEval.
    """
    if mode == "strict":
        return (response,)
    lines = response.split("\n")
    cut = ("\n".join(part).strip() for part in (lines[1:], lines[:-1], lines[1:-1]))
    whole = (response, *cut)
    return (*whole, *(form.replace("*", "") for form in whole))


def _judged(
    item: VerifierItem,
    instructions: Sequence[Instruction],
    mode: str,
    scoring: str,
    *,
    skip_thought: bool,
) -> Judgement:
    response = item.response()
    if skip_thought:
        response = response.rpartition("</think>")[2]
        response = response.replace("<answer>", "").replace("</answer>", "").strip()
    tried = forms(response, mode)
    names = _names(instructions)
    results = [instruction.follows(tried) for instruction in instructions]
    share = sum(results) / len(results)
    score = float(share == 1.0) if scoring == "all" else share
    components = tuple(
        Component(name, float(result), 0.0) for name, result in zip(names, results, strict=True)
    )
    broken = [name for name, result in zip(names, results, strict=True) if not result]
    verdict = "followed" if share == 1.0 else "partly-followed" if share else "not-followed"
    return Judgement.composed(
        verdict, (Component("followed", score), *components), explanation=_explained(broken)
    )


def _explained(broken: Sequence[str]) -> str:
    if not broken:
        return "every instruction is followed"
    more = f" and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
    return f"not followed: {', '.join(broken[:_SHOWN])}{more}"


def _names(instructions: Sequence[Instruction]) -> list[str]:
    """Names of components: ids in kebab-case, numbered from the second of the same name."""
    seen: Counter[str] = Counter()
    names = []
    for instruction in instructions:
        name = instruction.identity.replace(":", "-").replace("_", "-")
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
