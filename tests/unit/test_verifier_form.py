"""Structure, length, repetition, language and steps: golden tables with their sources."""

from __future__ import annotations

import pytest

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNSUPPORTED_INPUT,
    Candidate,
    Judgement,
    Message,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.reward_server.verifiers.form.length import cosine, length, soft_overlong
from assay.reward_server.verifiers.form.repetition import (
    compression_ratio,
    longest_repeat,
    numbered,
    repeated_share,
    repetition,
    units,
)
from assay.reward_server.verifiers.form.steps import reasoning_steps
from assay.reward_server.verifiers.form.structure import well_formed
from assay.verifiers_extra.languages.detection import detect
from assay.verifiers_extra.languages.language import in_language

GERMAN = "Zuerst addieren wir die beiden Gleichungen, und dann lösen wir nach der Unbekannten auf."
ENGLISH = "First we add the two equations, and then we solve for the unknown that is left over."


def judged(
    verifier: Verifier,
    response: str,
    tokens: int | None = None,
    prompt: str = "",
    **parameters: ParameterValue,
) -> Judgement:
    """What a verifier makes of a response; its glance must agree."""
    item = VerifierItem(
        Candidate(response),
        parameters=verifier.spec.complete(parameters),
        response_token_count=tokens,
        prompt=(Message("user", prompt),) if prompt else (),
    )
    judgement = verifier.judge(item)
    assert verifier.glance(item) in (None, judgement)
    assert verifier.spec.min_reward <= judgement.reward <= verifier.spec.max_reward
    assert judgement.verdict in verifier.spec.verdicts
    return judgement


THINK = "<think>\nso\n</think>\n<answer>\n42\n</answer>"  # the layout of open-r1's tests
FORMATS = (
    # structure, response, extracted answer or None for malformed
    ("think-answer", THINK, "42"),
    ("think-answer", "<think>so</think><answer>42</answer>", "42"),
    ("think-answer", f"  {THINK}\n", "42"),
    ("think-answer", f"Well. {THINK}", None),
    ("think-answer", f"{THINK}\nor 43", None),  # open-r1's pattern accepts it
    ("think-answer", f"{THINK}\n{THINK}", None),
    ("think-answer", "<think>so</think> thus <answer>42</answer>", None),
    ("think-answer", "<answer>42</answer><think>so</think>", None),
    ("think-answer", "<think>a<think>b</think></think><answer>42</answer>", None),
    ("think-answer", "<think> </think><answer>42</answer>", None),
    ("think-answer", "<think>so</think><answer> </answer>", None),
    ("think-answer", "<THINK>so</THINK><answer>42</answer>", None),
    ("think-answer", "", None),
    ("answer", "It is <answer> 42 </answer>, I think.", "42"),
    ("answer", "<answer>42</answer><answer>43</answer>", None),
    ("answer", "</answer>42<answer>", None),
    ("boxed", r"So \boxed{\frac{1}{2}} it is", r"\frac{1}{2}"),
    ("boxed", r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
    ("boxed", r"\boxed {42}", "42"),
    ("boxed", r"\boxed{1} or \boxed{2}", None),
    ("boxed", r"\boxed{\boxed{2}}", None),
    ("boxed", r"\boxed{1", None),
    ("boxed", r"\boxed 1", None),
    ("boxed", r"\boxed{}", None),
    ("code-fence", "Here:\n```python\nx = 1\n```\n", "x = 1"),
    ("code-fence", "```\nx = 1\n```", "x = 1"),
    ("code-fence", "```python\nx = 1", None),
    ("code-fence", "```\na\n```\n```\nb\n```", None),
    ("code-fence", "```\n```", None),
    ("code-fence", "x = 1", None),
    ("json", ' {"a": [1, null]} ', '{"a": [1, null]}'),
    ("json", '```json\n{"a": 1}\n```', '{"a": 1}'),
    ("json", "[1]", None),
    ("json", '{"a": NaN}', None),
    ("json", '{"a": 1} {"b": 2}', None),
    ("json", "[" * 100_000, None),
    ("json", '{"a": "' + "x" * 300_000 + '"}', None),
    ("react", "Thought: I know.\nFinal Answer: 42", "42"),
    ("react", "Thought: t\nFinal Answer: 42\nFinal Answer: 43", None),
    ("react", "Thought: t\nAction: look\nAction Input: x\nObservation: 42", None),
    ("react", "Thought: t\nAction:\nAction Input: x", None),
    ("react", "Hm.\nThought: t\nFinal Answer: 42", None),
)


@pytest.mark.parametrize(("structure", "response", "answer"), FORMATS)
def test_structures(structure: str, response: str, answer: str | None) -> None:
    judgement = judged(well_formed, response, structure=structure)
    assert judgement.extracted_answer == (None if answer is None else answer[:200])
    assert judgement.verdict == ("malformed" if answer is None else "well-formed")
    assert judgement.reward == (answer is not None)


@pytest.mark.parametrize(
    ("response", "parameters", "verdict"),
    [
        ("<think>a</think>b", {"structure": "think"}, "well-formed"),
        ("a</think>b", {"structure": "think"}, "malformed"),
        ("a</think>b", {"structure": "think", "opened": True}, "well-formed"),
        ("<think>a</think>b", {"structure": "think", "opened": True}, "well-formed"),
        ("<think>a</think>", {"structure": "think"}, "malformed"),
        (" a<think>a</think>b", {"structure": "think"}, "malformed"),
        ("<think>a</think>b", {"structure": "think", "newlines": True}, "malformed"),
        ("<think>\na\n</think>\nb", {"structure": "think", "newlines": True}, "well-formed"),
        (THINK, {"newlines": True}, "well-formed"),
        (THINK.replace("\n42", "42"), {"newlines": True}, "malformed"),
        ("<answer>\n4\n</answer>", {"structure": "answer", "newlines": True}, "well-formed"),
        ("<answer>4</answer>", {"structure": "answer", "newlines": True}, "malformed"),
        ("```Python\n1\n```", {"structure": "code-fence", "language": "python"}, "well-formed"),
        ("```py\n1\n```", {"structure": "code-fence", "language": "python"}, "malformed"),
        (
            "Thought: t\nAction: look\nAction Input: {}",
            {"structure": "react"},
            "well-formed",
        ),
    ],
)
def test_structures_with_parameters(
    response: str, parameters: dict[str, ParameterValue], verdict: str
) -> None:
    assert judged(well_formed, response, **parameters).verdict == verdict


@pytest.mark.parametrize(
    ("response", "score"),
    # the cases of open-r1's test_tag_count_rewards, in our own words
    [
        (THINK, 1.0),
        (THINK.replace("<think>\n", ""), 0.75),
        (THINK.replace("\n</answer>", ""), 0.75),
        ("<think>\nso\n</think>\n42", 0.5),
        ("42", 0.0),
        (f"{THINK}\n{THINK}", 0.0),
    ],
)
def test_tag_count(response: str, score: float) -> None:
    verifier = well_formed
    for newlines in (True, False):
        got = judged(verifier, response, structure="tag-count", newlines=newlines)
        assert got.reward == score


@pytest.mark.parametrize(
    ("tokens", "expected"),
    # DAPO, arXiv 2503.14476, equation 13 with its L_max and L_cache
    [(0, 0.0), (10_330, 0.0), (16_384, 0.0), (18_432, -0.5), (20_480, -1.0), (20_481, -1.0)],
)
def test_soft_overlong(tokens: int, expected: float) -> None:
    assert soft_overlong(tokens, 20_480, 4_096) == expected
    judgement = judged(length, "x", tokens=tokens)
    assert judgement.reward == expected
    assert judged(length, "x", tokens=tokens, factor=2.0).reward == 2 * expected


@pytest.mark.parametrize(
    ("correct", "tokens", "expected"),
    # arXiv 2502.03373, appendix C.1: worked out by hand with L_max = 1000, margin 16
    [
        (True, 865, 0.044298361682277354),
        (True, 0, 1.0),
        (True, 500, 0.5),
        (False, 16, -0.9993684783030088),
        (False, 500, -0.5),
        (True, 984, -10.0),
        (False, 2000, -10.0),
    ],
)
def test_cosine(correct: bool, tokens: int, expected: float) -> None:
    span = (0.0, 1.0) if correct else (0.0, -1.0)
    assert cosine(tokens, 1000, span, exceed=-10.0, margin=16) == pytest.approx(expected, abs=1e-12)
    got = judged(
        length,
        "x",
        tokens=tokens,
        shape="cosine",
        max_length=1000,
        margin=16,
        correct=correct,
    )
    assert got.reward == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "text", "expected"),
    [
        ("linear", "", 1.0),
        ("linear", "a b c d e", 0.5),
        ("linear", "a " * 20, 0.0),
        ("up-to", "a " * 10, 1.0),
        ("up-to", "a " * 12, 0.5),
        ("up-to", "a " * 20, 0.0),
        ("target", "a " * 10, 1.0),
        ("target", "a " * 9, 0.75),
        ("target", "a " * 11, 0.75),
        ("target", "", 0.0),
    ],
)
def test_other_shapes(shape: str, text: str, expected: float) -> None:
    got = judged(length, text, shape=shape, unit="words", max_length=10, scale=4)
    assert got.reward == expected


def test_length_units_and_faults() -> None:
    verifier = length
    assert judged(verifier, "日本 go", unit="characters").components[1].score == 5.0
    assert judged(verifier, "日本 go", unit="words").components[1].score == 2.0
    with pytest.raises(Unjudgeable, match="response_token_count") as caught:
        judged(verifier, "x")
    assert caught.value.reason == UNSUPPORTED_INPUT
    with pytest.raises(Unjudgeable, match="cache_length") as caught:
        judged(verifier, "x", tokens=1, max_length=10, cache_length=11)
    assert caught.value.reason == INVALID_PARAMETER


@pytest.mark.parametrize(
    ("tokens", "expected"),
    # arXiv 2502.03373, appendix C.2: (1 - distinct / all) * max_penalty, counted by hand
    [
        ([2, 3, 1, 1, 3, 0, 1, 0, 1, 3, 0, 1], -4 / 11),
        ([2, 3, 3, 1, 2, 2, 3, 1], -2 / 7),
        ([1], 0.0),
        ([], 0.0),
        ([5, 5, 5], -0.5),
    ],
)
def test_repetition(tokens: list[int], expected: float) -> None:
    assert -repeated_share(tokens, 2) == pytest.approx(expected, abs=1e-15)
    text = " ".join(map(str, tokens))
    got = judged(repetition, text, ngram=2, unit="words").reward
    assert got == pytest.approx(expected, abs=1e-15)
    doubled = judged(repetition, text, ngram=2, max_penalty=-2.0).reward
    assert doubled == pytest.approx(2 * expected, abs=1e-15)


def test_units_of_repetition() -> None:
    assert units("The CAT 我们 ok。", "auto") == ["the", "cat", "我", "们", "ok。"]
    assert units("The CAT", "characters") == list("thecat")
    assert numbered(["a", "b", "a"]) == [0, 1, 0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("a", 0), ("ab", 0), ("aa", 1), ("abcabc", 3), ("aaaa", 3), ("banana", 3)],
)
def test_longest_repeat(text: str, expected: int) -> None:
    assert longest_repeat(numbered(list(text))) == expected


def test_loops_are_suspected() -> None:
    loop = "Wait, let me check that once more, because it seems wrong. " * 40
    judgement = judged(repetition, loop)
    assert judgement.suspicions == ("long-repeat", "highly-compressible")
    assert judgement.verdict == "repetitive"
    assert compression_ratio("short") == 0.0
    prose = judged(repetition, ENGLISH)
    assert (prose.suspicions, prose.reward) == ((), 0.0)


@pytest.mark.parametrize(
    ("response", "parameters", "reward", "verdict"),
    [
        ("我们先把两个方程相加。", {"language": "zh"}, 1.0, "consistent"),
        ("私はこれを計算します。", {"language": "ja"}, 1.0, "consistent"),
        ("我们先把两个方程相加。", {"language": "ja"}, 0.0, "other-language"),
        ("우리는 두 식을 더합니다.", {"language": "ko"}, 1.0, "consistent"),
        (ENGLISH, {"language": "zh"}, 0.0, "other-language"),
        (ENGLISH, {"language": "en"}, 1.0, "consistent"),
        (GERMAN, {"language": "de"}, 1.0, "consistent"),
        (GERMAN, {"language": "en"}, 0.0, "other-language"),
        ("我们 add 它 then", {"language": "zh"}, 0.6, "mixed"),
        ("我们 add 它 then", {"language": "zh", "scoring": "binary"}, 0.0, "mixed"),
        ("我们加 x", {"language": "zh"}, 1.0, "consistent"),
        (r"$x = 7$ `let y` \frac 1 2", {"language": "zh"}, 1.0, "no-words"),
        ("```\nadd these words\n```\n好", {"language": "zh"}, 1.0, "consistent"),
        (f"<think>{GERMAN}</think>{ENGLISH}", {"language": "en", "part": "answer"}, 1.0, None),
        (f"<think>{GERMAN}</think>{ENGLISH}", {"language": "de", "part": "thought"}, 1.0, None),
        (ENGLISH, {"language": "en", "part": "thought"}, 1.0, "no-words"),
    ],
)
def test_language(
    response: str, parameters: dict[str, ParameterValue], reward: float, verdict: str | None
) -> None:
    judgement = judged(in_language, response, **parameters)
    assert judgement.reward == pytest.approx(reward)
    assert verdict in (None, judgement.verdict)


def test_the_thought_in_another_language_halves_the_share() -> None:
    mixed = f"<think>{GERMAN}\n{GERMAN}</think>\n{ENGLISH}\n{ENGLISH}"
    share = judged(in_language, mixed, language="en").reward
    assert 0.4 < share < 0.7


@pytest.mark.parametrize(
    ("prompt", "response"),
    [
        ("Which number solves both of the equations?", ENGLISH),
        ("Welche Zahl löst die beiden Gleichungen?", GERMAN),
        ("这个数是多少。", "答案是七。"),
        ("この数はいくつですか", "それは七です"),
        ("이 수는 무엇입니까", "그것은 칠입니다"),
        ("かな", "かな"),
    ],
)
def test_the_language_of_the_prompt(prompt: str, response: str) -> None:
    assert judged(in_language, response, prompt=prompt).verdict == "consistent"


@pytest.mark.parametrize("prompt", ["", "2 + 2", "hm"])
def test_a_prompt_without_language_is_a_fault(prompt: str) -> None:
    with pytest.raises(Unjudgeable, match="pass the parameter") as caught:
        judged(in_language, ENGLISH, prompt=prompt)
    assert caught.value.reason == UNSUPPORTED_INPUT


def test_detection_is_repeatable() -> None:
    text = "Det er en fin dag i dag, og vi skal ud."
    assert len({detect(text) for _ in range(5)}) == 1
    assert detect("123") is None


@pytest.mark.parametrize(
    ("response", "reward"),
    # marks as in open-r1's reasoning_steps_reward
    [
        ("Step 1: a\nStep 2: b\nStep 3: c", 1.0),
        ("1. a\n2. b", 2 / 3),
        ("text\n- a\n* b\n- c\n- d", 1.0),
        ("First, a. Next, b.", 2 / 3),
        ("**bold** and --", 0.0),
        ("3.14", 0.0),
        ("", 0.0),
    ],
)
def test_reasoning_steps(response: str, reward: float) -> None:
    assert judged(reasoning_steps, response).reward == pytest.approx(reward)
