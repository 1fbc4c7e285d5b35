"""What must hold of steps and of self-verification, whatever a policy writes."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.clients.judging.self_verification import (
    CLOSING,
    OPTIONS,
    Dialogue,
    before_verdict,
    dialogue_of,
    metrics,
    parse_verdict,
    score_turns,
    stated_answer,
    turn_rewards,
)
from assay.genrm.domain import CandidateSteps, ResolvedStepSettings
from assay.genrm.engines.base import ModelInfo, RateSteps, StepsRated, TokenCounts
from assay.genrm.self_verification import verification_prompt
from assay.genrm.steps import (
    aggregate,
    label_lines,
    score_steps,
    search_prefix,
    spans_of,
    split,
)
from assay.genrm.steps.code import mask_idle
from assay.genrm.steps.languages import LANGUAGES
from assay.genrm.templates import load_templates
from genrm_judging_support import QUESTION, drive

TEMPLATES = load_templates()
HEAD = ModelInfo("prm", "transformers", "r", frozenset(["rate-steps"]), 4096, deterministic=True)
SPLITTINGS = st.sampled_from(["auto", "line", "paragraph", "tag", "code-line"])
NAMES = st.sampled_from([*sorted(LANGUAGES), "python", "unknown"])
# Text made of what matters to the scanners, and of anything else.
MARKS = ["\n", "\r\n", "\r", " ", "\t", "#", '"', "'", '"""', "'''", "\\", "//", "/*", "*/", "```",
         "~~~~", "(", ")", ";", "x", "f", "def f():", "--", "{-", "-}", "<s>", "\n\n", "\x0c",
         "\u2028", "é", "`", "lambda:"]  # fmt: skip
TEXTS = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(MARKS), max_size=30).map("".join))
SCORES = st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=1, max_size=12).filter(
    lambda scores: any(score is not None for score in scores)
)
VERDICT = st.sampled_from(["correct", "wrong", "unparsed"])


@given(TEXTS, SPLITTINGS, NAMES)
def test_spans_cover_a_response_without_overlap(text: str, splitting: str, language: str) -> None:
    spans = split(text, splitting, "<s>", language)
    assert "".join(text[span.start : span.end] for span in spans) == text
    assert all(span.start < span.end for span in spans)
    assert [span.start for span in spans[1:]] == [span.end for span in spans[:-1]]


@given(TEXTS, SPLITTINGS)
@example('0"""\n\n"""', "code-line")  # a blank line within a string
def test_a_step_that_counts_says_something(text: str, splitting: str) -> None:
    for span in split(text, splitting, "<s>"):
        assert span.neutral or text[span.start : span.end].strip()
    if splitting != "code-line" and text.strip():
        assert not any(span.neutral for span in split(text, splitting, "<s>"))


@given(TEXTS, SPLITTINGS)
def test_cutting_again_what_was_cut_changes_nothing(text: str, splitting: str) -> None:
    spans = split(text, splitting, "<s>")
    assert spans_of([text[span.start : span.end] for span in spans], splitting) == spans


@given(TEXTS, NAMES)
def test_masking_keeps_places_and_is_at_rest_on_masked_text(text: str, language: str) -> None:
    masked = mask_idle(text, language)
    assert len(masked) == len(text)
    for before, after in zip(text, masked, strict=True):
        assert after in (" ", "x", before)
        assert not before.isspace() or after in (before, "x", " ")


@given(st.lists(st.sampled_from(["x = 1", "if y:", "    z(x)", "", "   "]), max_size=8))
def test_a_comment_on_its_own_line_is_neutral_wherever_it_stands(lines: list[str]) -> None:
    for place in range(len(lines) + 1):
        more = [*lines[:place], "    # said 'twice'", *lines[place:]]
        idle = [span.neutral for span in split("\n".join([*more, "end"]), "code-line")]
        assert idle[place]
        del idle[place]
        plain = [span.neutral for span in split("\n".join([*lines, "end"]), "code-line")]
        assert idle == plain


@given(SCORES)
def test_aggregates_are_chances_in_order(scores: list[float | None]) -> None:
    values = {how: aggregate(scores, how) for how in ("min", "product", "last", "mean")}
    assert all(0 <= value <= 1 for value in values.values())
    assert values["product"] <= values["min"] <= values["mean"]
    assert values["min"] <= values["last"]


@given(SCORES, st.integers(0, 12), st.sampled_from(["min", "product", "last", "mean"]))
def test_neutral_steps_change_no_aggregate(
    scores: list[float | None], place: int, how: str
) -> None:
    more = [*scores[:place], None, *scores[place:]]
    assert aggregate(more, how) == aggregate(scores, how)


@given(st.integers(0, 3000), st.data())
def test_the_search_finds_the_border_in_few_steps(lines: int, data: st.DataObject) -> None:
    border = data.draw(st.integers(0, lines))
    asked: list[int] = []

    def feasible(count: int) -> bool:
        asked.append(count)
        return count <= border

    found, calls = search_prefix(lines, feasible)
    assert (found, calls) == (border, len(asked))
    assert calls <= math.ceil(math.log2(lines + 1))
    assert all(1 <= count <= lines for count in asked)
    labels = label_lines([False] * lines, found)
    assert labels.count(1) == border
    assert labels.count(-1) == lines - border


@given(TEXTS.filter(str.strip), st.data())
def test_a_head_is_asked_for_every_step_and_judges_those_that_count(
    text: str, data: st.DataObject
) -> None:
    settings = ResolvedStepSettings(splitting="line", aggregation="mean")
    item = CandidateSteps(QUESTION, text)

    def answer(request: object) -> StepsRated:
        assert isinstance(request, RateSteps)
        assert "".join(request.steps) == text
        count = len(request.steps)
        drawn = data.draw(st.lists(st.floats(0, 1), min_size=count, max_size=count))
        return StepsRated(tuple(drawn), TokenCounts(1))

    scores, _ = drive(score_steps(item, settings, HEAD, TEMPLATES), answer)
    below = [s.score is not None and s.score < scores.error_threshold for s in scores.steps]
    assert scores.first_error == (below.index(True) if any(below) else None)
    assert scores.passed == (scores.aggregate >= scores.error_threshold)


@given(TEXTS, st.sampled_from(OPTIONS), st.sampled_from(["", " ", "\n", "\n\n"]))
def test_a_text_that_closes_as_asked_is_read(text: str, option: str, gap: str) -> None:
    said = f"{text}{gap}{CLOSING}{option}."
    assert parse_verdict(said) == parse_verdict(said, strict=False) == option.strip()
    assert before_verdict(said) == text + gap


@given(st.one_of(TEXTS, st.lists(st.sampled_from(
    ["The answer is", " correct", " wrong", ".", "\n", "not", " ", "the solution is", "Verdict:",
     "incorrect", "if ", "**", "\\boxed{", "}"]
), max_size=12).map("".join)))  # fmt: skip
def test_a_strict_verdict_is_the_tolerant_one_too(text: str) -> None:
    strict, tolerant = parse_verdict(text), parse_verdict(text, strict=False)
    assert strict in ("unparsed", tolerant)
    before = before_verdict(text)
    assert text.startswith(before)
    assert (tolerant == "unparsed") <= (before == text)
    assert not any(character.isspace() for character in stated_answer(text))


@given(TEXTS)
def test_a_verification_is_read_up_to_its_verdict(text: str) -> None:
    prompt = verification_prompt(QUESTION, ("a", text))
    shown = "".join(piece.text for piece in prompt.lead) + prompt.prefill
    assert shown.endswith(CLOSING)
    assert shown.removesuffix(CLOSING).split() == before_verdict(text).split()


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.floats(0, 10), st.data())
def test_rewards_add_up(right: list[bool], shaping: float, data: st.DataObject) -> None:
    verdicts = data.draw(st.lists(VERDICT, min_size=len(right) - 1, max_size=len(right)))
    accuracies = [float(one) for one in right]
    rewards = turn_rewards(accuracies, verdicts, shaping)
    assert len(rewards) == len(right) + len(verdicts)
    assert set(rewards[1::2]) <= {0.0, 1.0}
    # The gains of the attempts cancel out but for the last and the first.
    gained = sum(rewards[0::2]) - sum(accuracies)
    assert gained == pytest.approx(shaping * (accuracies[-1] - accuracies[0]), abs=1e-9)
    # An unparsed verdict never earns; a parsed one earns where its opposite does not.
    for place, verdict in enumerate(verdicts):
        swapped = {"correct": "wrong", "wrong": "correct", "unparsed": "unparsed"}[verdict]
        other = turn_rewards(accuracies, [*verdicts[:place], swapped, *verdicts[place + 1 :]], 1.0)
        earned = rewards[2 * place + 1] + other[2 * place + 1]
        assert earned == (0.0 if verdict == "unparsed" else 1.0)


@st.composite
def dialogues(draw: st.DrawFn) -> Dialogue:
    right = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    verdicts = draw(st.lists(VERDICT, min_size=len(right) - 1, max_size=len(right)))
    chances = draw(st.lists(st.floats(0, 1), min_size=len(verdicts), max_size=len(verdicts)))
    group = draw(st.sampled_from(["", "a", "b"]))
    return Dialogue(tuple(right), tuple(verdicts), tuple(chances), (), group)


@given(st.lists(dialogues(), max_size=8), st.randoms())
def test_metrics_are_ratios_and_do_not_depend_on_the_order(batch: list[Dialogue], random) -> None:
    counted = metrics(batch)
    for name in counted.__slots__:
        value = getattr(counted, name)
        assert value is None or 0 <= value <= 1
    shuffled = list(batch)
    random.shuffle(shuffled)
    for name in counted.__slots__:
        assert getattr(metrics(shuffled), name) == pytest.approx(getattr(counted, name))


@given(st.lists(dialogues(), min_size=1, max_size=6))
def test_what_turns_right_and_wrong_accounts_for_the_final_accuracy(batch: list[Dialogue]) -> None:
    counted = metrics(batch)
    first, final = counted.first_accuracy, counted.final_accuracy
    assert first is not None
    gained = (1 - first) * (counted.incorrect_to_correct_ratio or 0.0)
    lost = first * (counted.correct_to_incorrect_ratio or 0.0)
    assert final == pytest.approx(first + gained - lost)
    assert counted.gained_ratio == pytest.approx(gained)
    assert counted.lost_ratio == pytest.approx(lost)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.sampled_from(["strict", "tolerant"]), st.data())
def test_scored_turns_make_the_dialogue_that_was_counted(
    turns: list[str], parsing: str, data: st.DataObject
) -> None:
    attempts = len(turns[0::2])
    right = data.draw(st.lists(st.booleans(), min_size=attempts, max_size=attempts))
    scores = score_turns(turns, right, parsing=parsing)
    assert len(scores) == len(turns)
    dialogue = dialogue_of(turns, scores, parsing)
    assert dialogue.attempts_correct == tuple(right)
    accuracies = [float(one) for one in right]
    assert tuple(turn.reward for turn in scores) == turn_rewards(accuracies, dialogue.verdicts, 0.0)
