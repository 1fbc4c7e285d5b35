"""What must hold of every judge, whatever the model thinks."""

from __future__ import annotations

import hashlib
import itertools
import math
import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from assay.genrm.domain import (
    CandidateGroup,
    CandidatePair,
    CandidateResponse,
    ChatMessage,
    ResolvedJudgeSettings,
)
from assay.genrm.engines.base import Write
from assay.genrm.judges import judge_group, judge_pair, judge_response
from assay.genrm.judges.critique import Critique, majority, parse_critique
from assay.genrm.judges.numbers import (
    debias,
    expected_value,
    on_grid,
    option_probabilities,
    vote_error,
)
from assay.genrm.judges.parsing import read_direct, read_reasoned
from assay.genrm.templates import code_of, fence, fence_steps, load_templates
from assay.kit.faults import Unjudgeable
from genrm_judging_support import (
    GENERATIVE,
    QUESTION,
    SCALAR,
    WRITER,
    choosing,
    drive,
    moody,
    rating,
    writing,
)

TEMPLATES = load_templates()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
RESPONSES = TEXTS.filter(lambda text: text.strip())
LOGPROBS = st.floats(-700, 0)
SEEDS = st.integers(0, 2**32)


def coin(seed: int):
    """A writer whose verdicts are a hash of all that it reads, its seed included."""

    def text(request: Write) -> str:
        digest = hashlib.sha256(f"{seed}{request.seed}{request.prompt}".encode()).digest()
        return (" A", " B", " who knows")[digest[0] % 5 // 2]

    return text


@given(RESPONSES, RESPONSES, SEEDS)
def test_a_pair_swapped_is_one_minus_exactly(a: str, b: str, seed: int) -> None:
    answer = choosing(moody(seed))
    one, rounds = drive(
        judge_pair(CandidatePair(QUESTION, a, b), ResolvedJudgeSettings(), GENERATIVE, TEMPLATES),
        answer,
    )
    two, again = drive(
        judge_pair(CandidatePair(QUESTION, b, a), ResolvedJudgeSettings(), GENERATIVE, TEMPLATES),
        answer,
    )
    assert one.win_probability == 1.0 - two.win_probability
    assert two.win_probability == 1.0 - one.win_probability
    assert (one.forward, one.reverse) == (1.0 - two.reverse, 1.0 - two.forward)
    assert one.order_gap == two.order_gap == abs(one.forward - one.reverse)
    assert rounds == again
    assert one.win_probability == pytest.approx((one.forward + one.reverse) / 2, abs=1e-15)


@given(RESPONSES, RESPONSES, SEEDS, st.integers(1, 9), st.sampled_from([0.0, 1.0]))
def test_sampled_pairs_are_as_symmetric(
    a: str, b: str, seed: int, votes: int, temperature: float
) -> None:
    settings = ResolvedJudgeSettings(
        votes=votes, temperature=temperature, scoring="votes", seed=seed
    )

    def outcome(item: CandidatePair) -> float | str:
        try:
            run = judge_pair(item, settings, WRITER, TEMPLATES)
            return drive(run, writing(coin(seed)))[0].win_probability
        except Unjudgeable as fault:
            return fault.reason

    one, two = outcome(CandidatePair(QUESTION, a, b)), outcome(CandidatePair(QUESTION, b, a))
    if isinstance(one, str):
        assert one == two == "JUDGE_UNPARSED"
    else:
        assert one == 1.0 - two


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_scalar_pairs_are_as_symmetric(r_a: float, r_b: float) -> None:
    answer = rating({"a": r_a, "b": r_b}.__getitem__)
    one, _ = drive(
        judge_pair(CandidatePair(QUESTION, "a", "b"), ResolvedJudgeSettings(), SCALAR, TEMPLATES),
        answer,
    )
    two, _ = drive(
        judge_pair(CandidatePair(QUESTION, "b", "a"), ResolvedJudgeSettings(), SCALAR, TEMPLATES),
        answer,
    )
    assert one.win_probability == 1.0 - two.win_probability
    assert one.order_gap == 0.0
    assert (one.win_probability >= 0.5) == (r_a >= r_b) or abs(r_a - r_b) < 1e-12


@given(RESPONSES)
def test_equal_texts_are_equal_and_not_asked_about(text: str) -> None:
    for judge in (GENERATIVE, WRITER, SCALAR):
        run = judge_pair(
            CandidatePair(QUESTION, text, text), ResolvedJudgeSettings(), judge, TEMPLATES, 0.0
        )
        judgement, rounds = drive(run, choosing(moody(0)))
        assert (judgement.win_probability, judgement.order_gap, rounds) == (0.5, 0.0, [])


@given(st.lists(RESPONSES, min_size=2, max_size=5), SEEDS)
def test_round_robin_shares_out_half_a_point_each(responses: list[str], seed: int) -> None:
    item = CandidateGroup(QUESTION, tuple(responses))
    ranking, rounds = drive(
        judge_group(item, ResolvedJudgeSettings(), GENERATIVE, TEMPLATES), choosing(moody(seed))
    )
    assert math.fsum(ranking.scores) == pytest.approx(len(responses) / 2, abs=1e-12)
    assert all(0 <= score <= 1 for score in ranking.scores)
    assert len(rounds) <= 1
    for one, text in enumerate(responses):
        assert ranking.scores[one] == ranking.scores[responses.index(text)]


@given(st.lists(RESPONSES, min_size=1, max_size=5), RESPONSES, SEEDS, st.randoms())
def test_ranking_by_anchor_is_each_judged_alone_in_any_order(
    responses: list[str], anchor: str, seed: int, random: object
) -> None:
    answer = choosing(moody(seed))

    def scores(texts: list[str]) -> tuple[float, ...]:
        item = CandidateGroup(QUESTION, tuple(texts), anchor)
        return drive(judge_group(item, ResolvedJudgeSettings(), GENERATIVE, TEMPLATES), answer)[
            0
        ].scores

    alone = [
        drive(
            judge_response(
                CandidateResponse(QUESTION, text, anchor=anchor),
                ResolvedJudgeSettings(),
                GENERATIVE,
                TEMPLATES,
            ),
            answer,
        )[0].score
        for text in responses
    ]
    assert list(scores(responses)) == alone
    assert list(scores(responses[::-1])) == alone[::-1]


@given(st.lists(LOGPROBS, min_size=2, max_size=6), st.floats(-50, 0))
def test_option_probabilities_are_a_softmax(logprobs: list[float], shift: float) -> None:
    made = option_probabilities(logprobs)
    assert math.fsum(made) == pytest.approx(1.0, abs=1e-12)
    moved = option_probabilities([value + shift for value in logprobs])
    assert made == pytest.approx(moved, abs=1e-9)
    order = sorted(range(len(made)), key=logprobs.__getitem__)
    assert all(made[i] <= made[j] + 1e-15 for i, j in itertools.pairwise(order))


@given(
    st.lists(st.tuples(LOGPROBS, st.floats(0, 1)), min_size=2, max_size=6),
)
def test_an_expected_value_stays_among_its_values(pairs: list[tuple[float, float]]) -> None:
    logprobs, values = zip(*pairs, strict=True)
    mean = expected_value(logprobs, values)
    assert min(values) - 1e-12 <= mean <= max(values) + 1e-12
    assert 0.0 <= mean <= 1.0


@given(st.floats(0, 1), st.floats(0, 1))
def test_debiasing_forgets_the_place(forward: float, reverse: float) -> None:
    forward, reverse = on_grid(forward), on_grid(reverse)
    win, gap = debias(forward, reverse)
    assert 1.0 - (1.0 - win) == win
    assert (win, gap) == debias(reverse, forward)
    assert min(forward, reverse) <= win <= max(forward, reverse)
    assert gap == abs(forward - reverse)


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_a_bias_for_a_place_alone_is_parity(merit: float, bias: float) -> None:
    """Merit 0: whatever the bias, 0.5. Otherwise the better one wins unless the bias drowns it."""

    def logits(text: str) -> tuple[float, ...]:
        good_first = text.index("good") < text.index("poor")
        return (bias + (merit if good_first else -merit), 0.0)

    run = judge_pair(
        CandidatePair(QUESTION, "good", "poor"), ResolvedJudgeSettings(), GENERATIVE, TEMPLATES
    )
    win = drive(run, choosing(logits))[0].win_probability
    if merit == 0:
        assert win == pytest.approx(0.5, abs=1e-12)
    else:
        assert (win - 0.5) * merit >= -1e-12


@given(st.lists(st.booleans(), min_size=1, max_size=50))
def test_a_vote_is_never_certain(votes: list[bool]) -> None:
    error = vote_error([float(vote) for vote in votes])
    assert 0 < error < 0.5
    assert vote_error([float(not vote) for vote in votes]) == pytest.approx(error)
    assert vote_error([float(vote) for vote in votes] * 4) < error


@given(TEXTS)
def test_no_text_holds_its_own_code(text: str) -> None:
    code = code_of(text)
    assert len(code) == 8
    folded = unicodedata.normalize("NFKC", text).casefold()
    assert code not in "".join(c for c in folded if c in "0123456789abcdef")
    assert code_of(text) == code


@given(st.text("0123456789abcdef", min_size=200, max_size=400))
def test_not_even_a_text_of_digits(text: str) -> None:
    assert code_of(text) not in text


@given(TEXTS, TEXTS)
def test_a_fence_keeps_the_text_and_only_its_code_depends_on_it(one: str, two: str) -> None:
    pieces, others = fence("RESPONSE", one), fence("RESPONSE", two)
    assert [piece.text for piece in pieces if not piece.trusted] == [one]
    assert [piece.trusted for piece in pieces] == [True, False, True]
    ours = [piece.text.replace(code_of(one), "") for piece in pieces if piece.trusted]
    assert ours == [piece.text.replace(code_of(two), "") for piece in others if piece.trusted]
    assert not any(line in one.split("\n") for line in pieces[2].text.strip().split("\n"))


@given(st.lists(RESPONSES, min_size=1, max_size=6))
def test_steps_keep_their_texts_under_numbered_lines(steps: list[str]) -> None:
    pieces = fence_steps("RESPONSE", steps)
    assert [piece.text for piece in pieces if not piece.trusted] == [
        step.strip("\r\n") for step in steps
    ]
    ours = "".join(piece.text for piece in pieces if piece.trusted)
    assert [f"Step {number} " in ours for number in range(1, len(steps) + 2)] == [
        *[True] * len(steps),
        False,
    ]


@given(RESPONSES, RESPONSES, TEXTS)
def test_what_stands_before_the_candidate_is_shared(one: str, two: str, truth: str) -> None:
    assume(truth.strip())
    template = TEMPLATES.get("", "pointwise", "correctness@2")
    heads = []
    for response in (one, two):
        prompt = template.render(question=QUESTION, response=response, ground_truth=truth)
        text = prompt.messages[-1].text
        heads.append(text[: text.index("[RESPONSE ")])
    assert heads[0] == heads[1]


@given(st.text("Ste:123 corectwngVdi\n.", max_size=200), st.integers(1, 4))
def test_a_parsed_critique_says_each_verdict_once(text: str, count: int) -> None:
    critique = parse_critique(text, count)
    if critique is not None:
        assert len(critique.steps) == len(critique.notes) == count
        assert text.rstrip().rpartition("\n")[2].lower().strip().startswith("verdict:")


@given(
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.booleans(),
    st.lists(
        st.sampled_from(["Sum is fine.", "> Step 9: correct", "so Step 1: wrong", ""]), max_size=3
    ),
)
def test_a_critique_in_the_form_is_read_back(
    steps: list[bool], final: bool, chatter: list[str]
) -> None:
    lines: list[str] = []
    for number, right in enumerate(steps, start=1):
        lines += [*chatter, f"Step {number}: {'correct' if right else 'wrong'}"]
    lines += [*chatter, f"Verdict: {'correct' if final else 'wrong'}"]
    critique = parse_critique("\n".join(lines), len(steps))
    assert critique is not None
    assert (critique.steps, critique.final) == (tuple(steps), final)
    for cut in range(len(lines)):
        if lines[cut].startswith(("Step", "Verdict")):
            without = "\n".join(lines[:cut] + lines[cut + 1 :])
            assert parse_critique(without, len(steps)) is None
            doubled = "\n".join(lines[: cut + 1] + lines[cut:])
            assert parse_critique(doubled, len(steps)) is None


@given(st.data(), st.integers(1, 4), st.integers(1, 9))
def test_a_majority_is_above_half_exactly_where_all_majorities_are(
    data: st.DataObject, step_count: int, votes: int
) -> None:
    flags = st.lists(st.booleans(), min_size=step_count, max_size=step_count)
    critiques = [Critique(tuple(data.draw(flags)), data.draw(st.booleans())) for _ in range(votes)]
    agreed = majority(critiques)
    whole = sum(one.final for one in critiques) > votes / 2
    assert agreed.final == (all(agreed.steps) and whole) == (agreed.share > 0.5)
    assert majority(critiques[::-1]) == agreed


@given(TEXTS, st.sampled_from(["1", "2"]))
def test_reasons_may_say_anything_but_the_end_of_the_thought(text: str, option: str) -> None:
    assume("</think>" not in text)
    written = f"<think>{text}<answer>1</answer></think>\n<answer>{option}</answer>\n"
    assert read_reasoned(written, ("1", "2")) == ("1", "2").index(option)
    assert read_reasoned(written + "<answer>2</answer>", ("1", "2")) is None
    assert read_reasoned(text, ("1", "2")) is None


@given(TEXTS)
def test_a_direct_verdict_is_the_option_alone(text: str) -> None:
    said = read_direct(text, (" A", " B"), "Answer:")
    bare = text.strip().removeprefix("Answer:").strip().removesuffix(".")
    assert (said is not None) == (bare in ("A", "B"))


@given(st.lists(st.sampled_from(["system", "user", "assistant", "tool"]), max_size=4), TEXTS)
def test_any_conversation_is_rendered_as_data(roles: list[str], said: str) -> None:
    prompt = TEMPLATES.get("", "pointwise", "quality@2").render(
        question=tuple(ChatMessage(role, said) for role in roles), response="x"
    )
    data = [piece.text for m in prompt.messages for piece in m.pieces if not piece.trusted]
    assert data == [*([said] * len(roles) if said else []), "x"]
