"""Plans, sub-questions, paths of a graph and questions that are made: laws, and who games them."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.reward_server.domain import (
    INVALID_PARAMETER,
    UNUSABLE_REFERENCE,
    Candidate,
    JsonValue,
    Judgement,
    ParameterValue,
    Unjudgeable,
    Verifier,
    VerifierItem,
)
from assay.verifiers_extra.reasoning.decomposition import decomposition
from assay.verifiers_extra.reasoning.paths import path_coverage
from assay.verifiers_extra.reasoning.plan import plan_execute
from assay.verifiers_extra.reasoning.question import question_item
from assay.verifiers_extra.reasoning.steps import content_words, in_order, section, steps_of

STEPS = ("Add the apples", "Halve the sum", "Subtract three pears", "Round the number up")
SUBS = ("Who wrote Emma?", "Where was Jane Austen born?", "What is the population of Steventon?")
PATH = [["aspirin", "inhibits", "COX-1"], ["COX-1", "produces", "thromboxane"],
        ["thromboxane", "promotes", "platelet aggregation"]]  # fmt: skip
GRAPH: dict[str, JsonValue] = {
    "path": PATH,
    "entities": [f"drug{n}" for n in range(20)],
    "aliases": {"aspirin": ["acetylsalicylic acid"]},
}
CHAIN = (
    "Aspirin inhibits COX-1.",
    "COX-1 produces thromboxane.",
    "Thromboxane promotes platelet aggregation.",
)
FACTS = {
    "Paris": ["in France", "on the Seine", "a capital"],
    "Rouen": ["in France", "on the Seine"],
    "Berne": ["a capital"],
}


def judge(
    verifier: Verifier, response: str, data: JsonValue = None, **given: ParameterValue
) -> Judgement:
    item = VerifierItem(Candidate(response), data=data, parameters=verifier.spec.complete(given))
    judgement = verifier.judge(item)
    assert verifier.glance(item) in (None, judgement)
    assert 0.0 <= judgement.reward <= 1.0
    return judgement


def planned(plan: list[str], done: list[str]) -> str:
    lists = ["\n".join(f"{n}. {one}" for n, one in enumerate(part, 1)) for part in (plan, done)]
    return f"<plan>\n{lists[0]}\n</plan>\n<execution>\n{lists[1]}\n</execution>\nIt is 4."


def doing(*steps: int) -> list[str]:
    return [f"{STEPS[step]}: that makes result{step} of all" for step in steps]


@given(st.permutations(range(4)), st.integers(0, 4))
def test_adherence_is_what_is_done_in_order(order: list[int], many: int) -> None:
    done = order[:many]
    longest = max(
        (
            len(some)
            for size in range(len(done) + 1)
            for some in itertools.combinations(done, size)
            if list(some) == sorted(some)
        ),
        default=0,
    )
    judgement = judge(plan_execute, planned(list(STEPS), doing(*done)))
    assert judgement.reward == pytest.approx(2 * longest / (4 + max(many, 0)))
    if many:
        assert (judgement.verdict == "followed") == (done == [0, 1, 2, 3])


def test_steps_that_were_not_planned_cost() -> None:
    invented = [*doing(0, 1), "Now multiply everything by seven instead"]
    assert judge(plan_execute, planned(list(STEPS[:2]), invented)).reward == pytest.approx(4 / 5)
    repeated = doing(0, 0, 0, 1)
    assert judge(plan_execute, planned(list(STEPS[:2]), repeated)).reward == pytest.approx(4 / 6)


@pytest.mark.parametrize(
    "response",
    [
        planned([], doing(0)),
        planned(["Solve it"], ["Solve it and that makes four"]),
        planned(["Add the apples"] * 4, doing(0, 0, 0, 0)),
        planned(["", "the"], doing(0, 1)),
        "It is 4.",
        "<execution>1. a\n2. b</execution><plan>1. a\n2. b</plan>",
        planned(list(STEPS), doing(0)) + "<plan>again</plan>",
        "Hello. " + planned(list(STEPS), doing(0)),
        planned([f"step number x{n} of it" for n in range(65)], doing(0)),
        "<plan>" + "x" * 20_001 + "</plan><execution>1. a</execution>",
    ],
)
def test_what_is_no_plan(response: str) -> None:
    judgement = judge(plan_execute, response)
    assert (judgement.verdict, judgement.reward) == ("malformed", 0.0)


def test_an_echo_and_the_words_of_the_whole_plan_gain_nothing() -> None:
    assert judge(plan_execute, planned(list(STEPS), list(STEPS))).verdict == "not-followed"
    stuffed = f"{' '.join(STEPS)} and so on and on"
    for some in (STEPS, STEPS[:3], STEPS[:2]):
        judgement = judge(plan_execute, planned(list(some), [stuffed] * len(some)))
        assert (judgement.verdict, judgement.reward) == ("not-followed", 0.0)


def test_steps_of_the_plan_may_share_words() -> None:
    plan = ["Add the apples", "Add the pears", "Add both sums"]
    done = [f"{one}: this gives a number n{place}" for place, one in enumerate(plan)]
    assert judge(plan_execute, planned(plan, done)).verdict == "followed"


def test_tags_are_parameters() -> None:
    text = planned(list(STEPS), doing(0, 1, 2, 3)).replace("plan>", "exploration>")
    assert judge(plan_execute, text, plan="exploration").reward == 1.0
    for bad in ({"plan": "a b"}, {"plan": ""}, {"plan": "execution"}):
        with pytest.raises(Unjudgeable) as caught:
            judge(plan_execute, text, **bad)
        assert caught.value.reason == INVALID_PARAMETER


def test_the_steps_of_a_list() -> None:
    text = "Here goes:\n**Step 1:** Add\nthem up.\n2) Halve\n- Done\n## Step 4\nthe end"
    assert steps_of(text) == ["Add them up.", "Halve", "Done", "the end"]
    assert steps_of("one\n\ntwo") == ["one", "two"]
    assert section("<a>x</a>", "a") == ("x", 0, 8)
    assert section("</a><a>", "a") is None
    assert in_order("abcd", "badc", lambda a, b: a == b) == 2
    assert content_words("If it is not the end") == ["not", "end"]
    assert content_words("Is it?") == ["is", "it"]


def f1(one: str, other: str) -> float:
    left, right = content_words(one), content_words(other)
    shared = sum(min(left.count(word), right.count(word)) for word in set(left))
    return 2 * shared / (len(left) + len(right))


def test_the_pairing_is_the_best_of_all_permutations() -> None:
    draw = random.Random(3)
    words = [
        "who",
        "wrote",
        "emma",
        "where",
        "was",
        "jane",
        "austen",
        "born",
        "when",
        "how",
        "many",
        "live",
        "there",
    ]
    for _ in range(200):
        lists = [[" ".join(draw.sample(words, 4)) for _ in range(draw.randint(1, 4))] for _ in "ab"]
        named, right = lists
        table = [[v if (v := f1(a, b)) >= 0.5 else 0.0 for b in named] for a in right]
        small, large = sorted((len(named), len(right)))
        flip = len(right) > len(named)
        best = max(
            sum(table[p][n] if flip else table[n][p] for n, p in enumerate(some))
            for some in itertools.permutations(range(large), small)
        )
        found = judge(decomposition, json.dumps(named), right)
        assert found.reward == pytest.approx(2 * best / (len(named) + len(right)))


@given(st.permutations(SUBS), st.integers(0, 5))
def test_order_is_free_and_each_further_sub_question_costs(subs: list[str], more: int) -> None:
    extra = [f"What is thing number {n} made of?" for n in range(more)]
    response = "\n".join(f"{n}. {one}" for n, one in enumerate([*subs, *extra], 1))
    judgement = judge(decomposition, response, list(SUBS))
    assert judgement.reward == pytest.approx(6 / (6 + more))
    strict = judge(decomposition, response, list(SUBS), ordered=True)
    assert (strict.reward == judgement.reward) == (tuple(subs) == SUBS)


def test_stuffing_and_copies_gain_nothing() -> None:
    stuffed = " ".join(SUBS).replace("?", "")
    honest = judge(decomposition, SUBS[0], list(SUBS)).reward
    assert judge(decomposition, stuffed, list(SUBS)).reward < honest == 2 / 4
    hundred = json.dumps([SUBS[0]] * 60)
    assert judge(decomposition, hundred, list(SUBS)).reward == pytest.approx(2 / 63)
    assert judge(decomposition, json.dumps([SUBS[0]] * 65), list(SUBS)).verdict == "unparsed"
    assert judge(decomposition, "[]", list(SUBS)).verdict == "unparsed"
    assert judge(decomposition, "x" * 1_001, list(SUBS)).verdict == "unparsed"


def test_spellings_tags_and_hard_pairs() -> None:
    right: JsonValue = [["Where was she born?", "What is her birthplace?"], SUBS[0]]
    text = f"<think>So.</think><plan>What is her birthplace?\n{SUBS[0]}</plan> Steventon"
    assert judge(decomposition, text, right, tag="plan").verdict == "correct"
    assert judge(decomposition, text, right, tag="sub").verdict == "unparsed"
    close = judge(
        decomposition, json.dumps([SUBS[0] + " really", "What is her birthplace?"]), right
    )
    assert close.verdict == "partial"
    hard = judge(
        decomposition,
        json.dumps([SUBS[0] + " really", "What is her birthplace?"]),
        right,
        soft=False,
    )
    assert hard.reward == 1.0


@pytest.mark.parametrize(
    "bad", [[], {}, [""], ["a", 1], [["a", ""]], [[]], ["x"] * 65, ["x" * 1_001]]
)
def test_references_that_are_no_sub_questions(bad: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(decomposition, "a", bad)
    assert caught.value.reason == UNUSABLE_REFERENCE


@given(st.permutations(range(3)), st.integers(1, 3))
def test_a_chain_out_of_order_or_with_a_gap_earns_less(order: list[int], many: int) -> None:
    said = order[:many]
    judgement = judge(path_coverage, " ".join(CHAIN[n] for n in said), GRAPH)
    f1_ = 2 * many / (3 + many)
    assert judgement.reward <= f1_ + 1e-12
    assert (judgement.reward == pytest.approx(f1_)) == (
        said == list(range(min(said), min(said) + many))
    )


def test_a_gap_and_a_turn_by_hand() -> None:
    gap = judge(path_coverage, f"{CHAIN[0]} {CHAIN[2]}", GRAPH)
    assert gap.reward == pytest.approx(4 / 5 * 1 / 2)
    turned = judge(path_coverage, f"{CHAIN[1]} {CHAIN[0]}", GRAPH)
    assert turned.reward == pytest.approx(4 / 5 * 1 / 2)
    alias = judge(path_coverage, "Acetylsalicylic acid inhibits COX-1.", GRAPH)
    assert alias.reward == pytest.approx(2 / 4)


@pytest.mark.parametrize(
    "text",
    [
        "Aspirin does not inhibit COX-1, though it inhibits pain.",
        "COX-1 inhibits aspirin.",
        "Aspirin, COX-1, thromboxane, platelet aggregation.",
        "Aspirin never inhibits COX-1.",
        "Aspirin doesn\u2019t really see to it that it inhibits COX-1.",
        "(COX-1, inhibits, aspirin)",
        "(aspirin, inhibits, everything)",
        "Aspirin inhibits, produces and promotes COX-1.",
        "(aspirin, inhibits produces promotes, COX-1)",
    ],
)
def test_what_covers_nothing(text: str) -> None:
    assert judge(path_coverage, text, GRAPH).reward == 0.0


def test_brackets_in_prose_are_no_triples() -> None:
    text = "Aspirin (bought, say, anywhere) inhibits COX-1."
    assert judge(path_coverage, text, GRAPH).reward == pytest.approx(2 / 4)
    mixed = "(aspirin, inhibits, COX-1) (say, that, all)"
    assert judge(path_coverage, mixed, GRAPH).reward == pytest.approx(2 / 5)


def test_dumping_the_graph_earns_nothing() -> None:
    names = ["aspirin", "COX-1", "thromboxane", *(f"drug{n}" for n in range(20))]
    triples = [f"({a}, inhibits, {b})" for a in names for b in names if a != b]
    assert judge(path_coverage, " ".join(triples), GRAPH).verdict == "dumped"
    assert judge(path_coverage, " ".join([*CHAIN, *[CHAIN[0]] * 5]), GRAPH).verdict == "dumped"
    four = judge(path_coverage, " ".join([*CHAIN, *[CHAIN[0]] * 4]), GRAPH)
    assert four.reward == pytest.approx(6 / 10)


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        {"path": []},
        {"path": [["a", "b"]]},
        {"path": [["a", "b", ""]]},
        {"path": [["a", "b", "c"]] * 2},
        {"path": PATH, "aliases": {"nobody": ["x"]}},
        {"path": PATH, "aliases": {"aspirin": ["COX-1"]}},
        {"path": PATH, "entities": [f"e{n}" for n in range(300)]},
    ],
)
def test_references_that_are_no_path(bad: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(path_coverage, "a b c", bad)
    assert caught.value.reason == UNUSABLE_REFERENCE


def asked(question: str, answer: str, *constraints: str) -> str:
    return json.dumps({"question": question, "answer": answer, "constraints": constraints})


@given(st.integers(0, 6), st.integers(2, 6))
def test_consensus_is_a_share_of_the_answerers(agree: int, many: int) -> None:
    said: JsonValue = ["Paris"] * min(agree, many) + ["Lyon"] * max(0, many - agree)
    judgement = judge(question_item, asked("Which city is it?", "the Paris"), {"answers": said})
    assert (judgement.verdict == "accepted") == (min(agree, many) / many >= 0.66)


def test_questions_that_need_no_evidence_or_name_the_answer() -> None:
    said: JsonValue = ["Paris", "Paris", "Paris"]
    fine = judge(
        question_item, asked("Which city?", "Paris"), {"answers": said, "guesses": ["a", "b"]}
    )
    assert fine.reward == 1.0
    known = judge(question_item, asked("Which city?", "Paris"), {"answers": said, "guesses": said})
    assert (known.verdict, known.reward) == ("rejected", 0.0)
    half = judge(
        question_item,
        asked("Which city?", "Paris"),
        {"answers": said, "guesses": said},
        partial=True,
    )
    assert half.reward == pytest.approx(2 / 3)
    assert judge(question_item, asked("Is it Paris?", "Paris"), {"answers": said}).reward == 0.0
    several = asked("Which city?", "Paris or Lyon")
    assert judge(question_item, several, {"answers": said}).reward == 0.0


def test_constraints_are_checked_by_a_search_over_all_subsets() -> None:
    draw = random.Random(5)
    kinds = [f"kind{n}" for n in range(5)]
    seen = set()
    for _ in range(300):
        facts = {f"e{n}": draw.sample(kinds, draw.randint(0, 5)) for n in range(draw.randint(1, 5))}
        chosen = draw.sample(kinds, draw.randint(1, 3))
        judgement = judge(question_item, asked(" ".join(chosen), "e0", *chosen), {"facts": facts})  # type: ignore[dict-item]
        meets = {
            some: {name for name, held in facts.items() if set(some) <= set(held)}
            for size in range(len(chosen) + 1)
            for some in itertools.combinations(chosen, size)
        }
        unique = meets[tuple(chosen)] == {"e0"}
        needed = all(
            len(found) > 1 for some, found in meets.items() if len(some) == len(chosen) - 1
        )
        assert (judgement.verdict == "accepted") == (unique and needed)
        seen.add(judgement.verdict)
    assert seen == {"accepted", "rejected"}


def test_constraints_that_repeat_or_are_not_asked_for() -> None:
    facts: JsonValue = {"facts": FACTS}
    good = asked("Which city on the Seine is a capital?", "Paris", "on the Seine", "a capital")
    assert judge(question_item, good, facts).reward == 1.0
    unasked = asked("Which city is a capital?", "Paris", "on the Seine", "a capital")
    assert judge(question_item, unasked, facts).reward == 0.0
    twice = asked(
        "Which city on the Seine, in France, is a capital?",
        "Paris",
        "on the Seine",
        "in France",
        "a capital",
    )
    assert judge(question_item, twice, facts).reward == 0.0
    none = asked("Which city is it?", "Paris")
    assert judge(question_item, none, facts).reward == 0.0
    assert judge(question_item, good, facts, least_constraints=3).reward == 0.0


@pytest.mark.parametrize(
    "bad",
    [None, [], {}, {"answers": []}, {"answers": ["a"]}, {"answers": "ab"}, {"answers": [1, 2]},
     {"facts": {}}, {"facts": {"a": "b"}}, {"facts": {"a": [], "A": []}}],
)  # fmt: skip
def test_references_that_allow_no_check(bad: JsonValue) -> None:
    with pytest.raises(Unjudgeable) as caught:
        judge(question_item, asked("q", "a"), bad)
    assert caught.value.reason == UNUSABLE_REFERENCE


@pytest.mark.parametrize(
    "text", ["", "no JSON", "[1]", '{"question": "q"}', '{"question": "q", "answer": 3}',
             asked("q", "a", " "), asked("q", "a", *["c"] * 17)],
)  # fmt: skip
def test_responses_that_are_no_question(text: str) -> None:
    assert judge(question_item, text, {"answers": ["a", "a"]}).verdict == "unparsed"
