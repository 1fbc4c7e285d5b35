"""Chat templates that open a thought: how a verdict is asked for behind it, and how it is ended.

The templates end as those of today's families do; their texts are ours.
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
from genrm_judging_support import GENERATIVE, QUESTION, TOKENS, WRITER, drive, text_of
from genrm_support import make_tokenizer

BODY = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
)
ENDS = {
    "Qwen2.5, Llama 3": "<|im_start|>assistant\n",
    "Qwen3, thinking off": "<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "Qwen3-Thinking, QwQ": "<|im_start|>assistant\n<think>\n",
    "DeepSeek-R1-Distill": "<|Assistant|><think>\n",
    "GLM-4.5": "<|assistant|>\n<think>",
    "Seed-OSS": "<seed:bos>assistant\n<seed:think>",
    "Magistral": "[/INST][THINK]",
    "Command A Reasoning": "<|CHATBOT_TOKEN|><|START_THINKING|>",
    "Kimi-VL-Thinking": "<|im_assistant|>assistant<|im_middle|>◁think▷",
    "gpt-oss": "<|start|>assistant",
}
OPENED = [name for name, end in ENDS.items() if end.rstrip().endswith((*CLOSERS, "assistant"))]
TEMPLATES = load_templates()
ALONE = CandidateResponse(QUESTION, "four", ground_truth="4")


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def shown(tokenizer: Any, family: str, prompt: Prompt) -> str:
    """What the model reads last."""
    encoder = PromptEncoder(tokenizer, chat_template=BODY + ENDS[family])
    return str(tokenizer.decode(encoder.encode(prompt))).rpartition("<|im_end|>\n")[2]


def asked(prefill: str, *lead: PromptPiece) -> Prompt:
    message = PromptMessage("user", (PromptPiece("Is it right?"),))
    return Prompt((message,), prefill, lead)


@pytest.mark.parametrize("family", ENDS)
def test_a_verdict_is_asked_for_outside_of_any_thought(tokenizer: Any, family: str) -> None:
    text = shown(tokenizer, family, asked("Verdict:"))
    assert text.startswith(ENDS[family].rstrip())
    assert text.endswith("Verdict:")
    for opening, closing in CLOSERS.items():
        assert text.count(opening) == text.count(closing)
    if family == "gpt-oss":
        assert text == "<|start|>assistant<|channel|>final<|message|>Verdict:"


@pytest.mark.parametrize("family", ENDS)
def test_a_prompt_that_begins_with_a_thought_opens_one(tokenizer: Any, family: str) -> None:
    text = shown(tokenizer, family, asked("<think>"))
    opened = sum(text.count(one) for one in CLOSERS) - sum(map(text.count, CLOSERS.values()))
    assert opened == 1
    assert text.rstrip().endswith(tuple(CLOSERS))


@pytest.mark.parametrize("family", ENDS)
def test_the_verdict_after_reasons_stands_behind_them(tokenizer: Any, family: str) -> None:
    said = PromptPiece("It is 4.\n</think>", trusted=False)
    text = shown(tokenizer, family, asked("\n<answer>", PromptPiece("<think>"), said))
    assert text.endswith("It is 4.\n</think>\n<answer>")
    opened = sum(text.count(one) for one in CLOSERS)
    closed = sum(map(text.count, CLOSERS.values()))
    assert opened - closed <= (0 if family not in OPENED or "think>" in ENDS[family] else 1)


def test_a_dialogue_that_is_rated_gets_nothing(tokenizer: Any) -> None:
    said = PromptMessage("assistant", (PromptPiece("4 <think>", trusted=False),))
    encoder = PromptEncoder(tokenizer, chat_template=BODY)
    ids = encoder.encode(Prompt((*asked("").messages, said)), closed=True)
    assert "</think>" not in tokenizer.decode(ids)


@given(st.text(max_size=30), st.sampled_from(list(CLOSERS)))
def test_no_thought_of_the_template_stays_open(before: str, opening: str) -> None:
    text = continued(f"{before}\n{opening}\n", "Verdict:")
    assert text.endswith(f"{opening}\n\n{CLOSERS[opening]}\n\nVerdict:")
    assert continued(f"{before}|", "Verdict:") == f"{before}|Verdict:"


@pytest.mark.parametrize("closing", CLOSERS.values())
def test_reasons_end_with_whatever_ends_them(closing: str) -> None:
    text = f"<think>Two and two.{closing}\n<answer>correct</answer>"
    assert read_reasoned(text, ("correct", "wrong")) == 0
    assert thought(text) == f"<think>Two and two.{closing}"
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
