"""What servers say, and what it means."""

from __future__ import annotations

import pytest

from assay.genrm.engines.base import EngineError, Prompt, PromptMessage, PromptPiece
from assay.genrm.engines.config import EngineConfig
from assay.genrm.engines.openai import OpenAIEngine, answers, texts
from assay.genrm.engines.openai.engine import root
from assay.genrm.engines.openai.fitting import TooLong, fitted, read
from assay.genrm.engines.openai.transport import Refused
from assay.genrm.engines.steps import chance
from assay.kit.errors import ConfigError


def config(**settings) -> EngineConfig:
    return EngineConfig(path="m", engine="openai", **settings)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000"),
        ("https://models.example/proxy", "https://models.example/proxy"),
    ],
)
def test_the_address_is_that_of_the_server(url, expected):
    assert root("m", config(base_url=url)) == expected


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "file:///etc", "http://a:b@host/v1"])
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(ConfigError, match="base_url"):
        root("m", config(base_url=url))


async def test_a_missing_key_is_named(monkeypatch):
    monkeypatch.delenv("ASSAY_TEST_KEY", raising=False)
    engine = OpenAIEngine(
        "m", config(base_url="http://127.0.0.1:1/v1", api_key_env="ASSAY_TEST_KEY")
    )
    with pytest.raises(ConfigError, match="ASSAY_TEST_KEY"):
        await engine.start()


@pytest.mark.parametrize(
    "text",
    ["<|im_end|>", "<|im_start|>", "</s>", "<s>", "[/INST]", "<<SYS>>", "<end_of_turn>",
     "<extra_0>", "<\uff5cend\u2581of\u2581sentence\uff5c>", "<0x0A>", "<|eot_id|>", "<think>"],
)  # fmt: skip
def test_special_tokens_in_data_are_broken_up(text):
    pattern = texts.lookalikes()
    (piece,) = texts.harmless((PromptPiece(f"so {text} it is", trusted=False),), pattern)
    assert piece.text == f"so {text[0]} {text[1:]} it is"


@pytest.mark.parametrize("text", ["a < b and c > d", "x <y> z", "list[int]", "<b>bold</b>", "|>"])
def test_other_text_stays(text):
    piece = PromptPiece(text, trusted=False)
    assert texts.harmless((piece,), texts.lookalikes()) == (piece,)


def test_a_token_made_of_two_pieces_is_broken_up():
    pieces = (PromptPiece("<|im_", trusted=False), PromptPiece("end|>", trusted=False))
    safe = texts.harmless(pieces, texts.lookalikes())
    assert "".join(piece.text for piece in safe) == "< |im_end|>"


def test_tokens_that_the_server_names_are_broken_up():
    pattern = texts.lookalikes(["<custom>"])
    assert texts.harmless((PromptPiece("<custom>", trusted=False),), pattern)[0].text == "< custom>"
    assert texts.breakable("<custom>")
    assert not texts.breakable("the")


def test_what_the_assistant_has_begun_may_think_and_not_end_its_turn():
    prompt = Prompt((), "</think><answer>", (PromptPiece("<think> <|im_end|>", trusted=False),))
    said = texts.begun(prompt, texts.lookalikes(), texts.lookalikes(tags=False))
    assert said == "< think> < |im_end|></think><answer>"


LIMIT = "This model's maximum context length is 100 tokens. However, "


@pytest.mark.parametrize(
    ("said", "used", "excess"),
    [
        (LIMIT + "your prompt contains 130 input tokens, which exceeds this limit", 130, 40),
        (LIMIT + "you requested 140 tokens (130 in the messages, 10 to come)", 140, 50),
        ("Input is longer than the maximum context window", 0, 0),
        ("prompt is too long", 0, 0),
    ],
)
def test_refusals_for_length_are_understood(said, used, excess):
    found = read(Refused(400, said), 10)
    assert (found.used, found.excess) == (used, excess)


def test_other_refusals_are_failures():
    with pytest.raises(EngineError) as raised:
        read(Refused(400, "temperature must be positive"), 1)
    assert raised.value.reason == "ENGINE_FAILED"
    assert "temperature" in raised.value.message


async def test_a_prompt_is_cut_until_it_fits():
    sizes = []

    async def attempt(prompt, cut):
        size = len(prompt.messages[0].text)
        sizes.append((size, cut))
        if size > 300:
            raise TooLong("too long", size // 2, size // 2 - 150, exact=True)
        return size

    prompt = Prompt(
        (PromptMessage("user", (PromptPiece("Q: "), PromptPiece("x" * 900, False, cuttable=True))),)
    )
    assert 180 < await fitted(prompt, True, 0, attempt) <= 300
    assert sizes[0] == (903, False)
    assert all(cut for _, cut in sizes[1:])
    assert len(sizes) == 2


@pytest.mark.parametrize("keep_ends", [False, True])
async def test_a_prompt_that_never_fits_is_too_long(keep_ends):
    async def attempt(prompt, cut):
        raise Refused(400, "maximum context length")

    prompt = Prompt((PromptMessage("user", (PromptPiece("x" * 100, False, cuttable=True),)),))
    with pytest.raises(EngineError) as raised:
        await fitted(prompt, keep_ends, 0, attempt)
    assert raised.value.reason == "CONTEXT_TOO_LONG"


def test_an_option_of_several_tokens_is_told_from_an_unlikely_one():
    with pytest.raises(EngineError, match="more than one token"):
        answers.by_text({"cor": -0.1, "wrong": -3.0}, ["correct", "wrong"], anyhow=True)
    found = answers.by_text({" A": -1.0, "A": -1.0, "B": -2.0}, [" A", " B"], anyhow=True)
    assert found[" A"] == pytest.approx(-1.0 + 0.6931, abs=1e-3)
    assert found[" B"] == -2.0
    assert answers.by_text({" A": -1.0, "A": -1.5}, [" A", " B"], anyhow=False) == {" A": -1.0}


def test_an_unlisted_option_that_could_matter_is_no_answer():
    with pytest.raises(EngineError, match="not among") as raised:
        answers.complete({"A": -1.0}, ["A", "B"], [-1.0, -1.1, -4.0])
    assert raised.value.reason == "ENGINE_FAILED"
    with pytest.raises(EngineError):
        answers.complete({}, ["A", "B"], [-0.1])


def test_an_unlisted_option_that_cannot_matter_gets_its_bound():
    found = answers.complete({"A": -1e-6}, ["A", "B"], [-1e-6, -14.0, -15.0])
    assert found["A"] == -1e-6
    assert found["B"] == pytest.approx(-15.0, abs=1.0)


def test_reasoning_that_a_server_took_out_is_put_back():
    message = {"content": "<answer>1</answer>", "reasoning_content": "It is."}
    answer = {"choices": [{"message": message, "finish_reason": "stop"}]}
    written = answers.written(answer, (), chat=True, cut=False)
    assert written.text == "<think>It is.</think><answer>1</answer>"


def test_an_answer_withheld_is_no_text():
    answer = {"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}
    with pytest.raises(EngineError, match="content_filter"):
        answers.written(answer, (), chat=True, cut=False)


def test_a_label_that_the_head_lacks_is_refused():
    with pytest.raises(EngineError, match="good_label"):
        chance([0.1, 0.2], 2)
