"""Chat templates that open a thought: how a verdict is asked for behind it, and how it is ended.

The templates end as those of today's families do (`chat_families`); their texts are ours.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm.domain import CandidateResponse, ResolvedJudgeSettings
from assay.genrm.engines.base import (
    Answer,
    Choose,
    Chosen,
    Prompt,
    PromptMessage,
    PromptPiece,
    Request,
    Write,
    Written,
)
from assay.genrm.engines.prompts import PromptEncoder
from assay.genrm.engines.thoughts import CLOSERS, continued
from assay.genrm.judges import judge_response
from assay.genrm.judges.parsing import read_reasoned, reasons, thought
from assay.genrm.templates import load_templates
from chat_families import FAMILIES, SPECIAL, TURNS, ChatFamily
from genrm_judging_support import GENERATIVE, QUESTION, TOKENS, WRITER, drive, text_of
from genrm_support import make_tokenizer

TEMPLATES = load_templates()
ALONE = CandidateResponse(QUESTION, "four", ground_truth="4")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def shown(tokenizer: Any, family: ChatFamily, prompt: Prompt) -> str:
    """What the model reads last."""
    encoder = PromptEncoder(tokenizer, chat_template=family.template)
    return str(tokenizer.decode(encoder.encode(prompt))).rpartition("<|im_end|>\n")[2]


def asked(prefill: str, *lead: PromptPiece) -> Prompt:
    message = PromptMessage("user", (PromptPiece("Is it right?"),))
    return Prompt((message,), prefill, lead)


def after(reasons: str) -> Prompt:
    """The judge's prompt behind its thought."""
    said = (PromptPiece(reasons, trusted=False), PromptPiece("</think>"))
    return asked("\n<answer>", PromptPiece("<think>"), *said)


BY_FAMILY = pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.name)


@BY_FAMILY
def test_a_verdict_is_asked_for_outside_of_any_thought(tokenizer: Any, family: ChatFamily) -> None:
    text = shown(tokenizer, family, asked("Verdict:"))
    assert text.endswith(family.direct)
    assert text.count("<think>") <= text.count("</think>")
    assert text.count("</think>") <= 1, "one thought at most"


@BY_FAMILY
def test_a_prompt_that_begins_with_a_thought_has_one(tokenizer: Any, family: ChatFamily) -> None:
    text = shown(tokenizer, family, asked("<think>"))
    assert text.endswith(family.thinking)
    assert sum(text.count(one) for one in CLOSERS) == 1
    assert not any(one in text for one in CLOSERS.values())


@BY_FAMILY
def test_the_verdict_after_reasons_stands_behind_them(tokenizer: Any, family: ChatFamily) -> None:
    text = shown(tokenizer, family, after("Two."))
    assert text.endswith(family.after)
    assert sum(text.count(one) for one in CLOSERS) == 1


def with_special_tags() -> Any:
    """A tokenizer to which tags of thoughts are special, as Magistral's and gpt-oss's are."""
    tokenizer = make_tokenizer()
    tokenizer.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    return tokenizer


@pytest.mark.parametrize("name", ["Magistral", "gpt-oss (harmony)"])
def test_the_end_of_a_thought_is_the_models_own_token_and_a_quoted_one_is_not(name: str) -> None:
    tokenizer = with_special_tags()
    family = next(one for one in FAMILIES if one.name == name)
    encoder = PromptEncoder(tokenizer, chat_template=family.template)
    end = "[/THINK]" if name == "Magistral" else "<|end|>"
    token = tokenizer.convert_tokens_to_ids(end)
    ids = encoder.encode(after(f"He says {end}{end}."))
    assert ids.count(token) == 1


def test_tags_of_thoughts_are_kept_in_what_a_judge_wrote() -> None:
    tokenizer = with_special_tags()
    encoder = PromptEncoder(tokenizer)
    options = ("correct", "wrong")
    for said in (
        "Two and two.[/THINK]\n<answer>correct</answer>",
        "Two and two.<|end|><|start|>assistant<|channel|>final<|message|><answer>correct</answer>",
    ):
        ids = tokenizer(f"{said}<|return|><|im_end|>", add_special_tokens=False)["input_ids"]
        assert encoder.decode(ids) == said, "and no other special token is"
        assert encoder.decode(ids[3:], ids[:3]) == said[len(encoder.decode(ids[:3])) :]
        assert thought(encoder.decode(ids)) == "Two and two."
        assert read_reasoned(encoder.decode(ids), options) == 0


def test_our_words_are_shown_as_they_are_where_a_template_takes_its_switch_out_of_them() -> None:
    """Nemotron's does: "/think" is its switch, and "</think>" holds it."""
    tokenizer = make_tokenizer()
    template = (
        "{% for m in messages %}<|im_start|>{{ m['content'].replace('/think', '') }}<|im_end|>\n"
        "{% endfor %}<|im_start|>assistant\n"
    )
    encoder = PromptEncoder(tokenizer, chat_template=template)
    words = "First think, between <think> and </think>."
    ids = encoder.encode(Prompt((PromptMessage("user", (PromptPiece(words),)),), "Verdict:"))
    assert words in tokenizer.decode(ids)


def test_a_dialogue_that_is_rated_gets_nothing(tokenizer: Any) -> None:
    said = PromptMessage("assistant", (PromptPiece("4 <think>", trusted=False),))
    encoder = PromptEncoder(tokenizer, chat_template=TURNS)
    ids = encoder.encode(Prompt((*asked("").messages, said)), closed=True)
    assert "</think>" not in tokenizer.decode(ids)


@given(st.text(max_size=30), st.sampled_from(list(CLOSERS)))
def test_no_thought_of_the_template_stays_open(before: str, opening: str) -> None:
    text = continued(f"{before}\n{opening}\n", "Verdict:")
    rest = text.removeprefix(f"{before}\n{opening}")
    assert rest.strip().removesuffix("Verdict:").strip() == CLOSERS[opening]
    assert continued(f"{before}|", "Verdict:") == f"{before}|Verdict:"


@pytest.mark.parametrize("closing", CLOSERS.values())
def test_reasons_end_with_whatever_ends_them(closing: str) -> None:
    text = f"<think>Two and two.{closing}\n<answer>correct</answer>"
    assert read_reasoned(text, ("correct", "wrong")) == 0
    assert thought(text) == "<think>Two and two."
    assert reasons(text) == "Two and two."
    assert read_reasoned(f"{text} and so on", ("correct", "wrong")) is None


def endless(request: Request) -> Answer:
    """A judge that thinks until its tokens are used up, and knows when it is asked."""
    if isinstance(request, Write):
        if request.prompt.prefill.endswith("<answer>"):
            assert "</think>" in text_of(request.prompt)
            return Written("correct", "stop", TOKENS)
        return Written("Let me see. The response says <answer>wrong</answer>. Hm", "length", TOKENS)
    assert isinstance(request, Choose)
    assert text_of(request.prompt).endswith("Hm\n</think>\n<answer>")
    return Chosen((-0.1, -3.0), TOKENS)


@pytest.mark.parametrize("scoring", ["votes", "token-probability"])
def test_a_long_thought_is_ended_and_the_verdict_asked_for(scoring: Any) -> None:
    settings = ResolvedJudgeSettings("correctness-reasoned@1", scoring, votes=3, max_tokens=20)
    model = WRITER if scoring == "votes" else GENERATIVE
    judgement, rounds = drive(judge_response(ALONE, settings, model, TEMPLATES), endless)
    assert judgement.score > 0.9
    assert judgement.unparsed_votes == 0
    assert [len(one) for one in rounds] == [3, 3]
    assert judgement.usage.completion == 6 * TOKENS.completion, "its tokens are counted"


def test_what_is_said_behind_a_forced_end_must_be_a_verdict() -> None:
    def answer(request: Request) -> Answer:
        if isinstance(request, Write) and request.prompt.prefill.endswith("<answer>"):
            return Written("perhaps", "stop", TOKENS)
        return endless(request)

    settings = ResolvedJudgeSettings("correctness-reasoned", "votes", votes=2)
    with pytest.raises(Exception, match="hold no verdict") as caught:
        drive(judge_response(ALONE, settings, WRITER, TEMPLATES), answer)
    assert getattr(caught.value, "reason", "") == "JUDGE_UNPARSED"


def test_the_reasoned_templates_open_one_thought() -> None:
    reasoned = [one for one in TEMPLATES.all() if one.style == "reasoned"]
    assert reasoned
    for template in reasoned:
        assert template.prefill == "<think>"
        assert dataclasses.replace(template).max_tokens >= 256
