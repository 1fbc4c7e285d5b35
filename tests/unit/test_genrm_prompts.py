"""Prompts to token ids: templates that refuse, tokenizers without one, spaces of their own."""

from __future__ import annotations

from typing import Any

import pytest

from assay.genrm.engines.base import EngineError, Prompt, PromptMessage, PromptPiece, RateSteps
from assay.genrm.engines.prompts import PromptEncoder, StepLayout
from genrm_support import make_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return make_tokenizer()


def asked(*texts: str, prefill: str = "", lead: tuple[PromptPiece, ...] = ()) -> Prompt:
    pieces = tuple(PromptPiece(text, trusted=n % 2 == 0) for n, text in enumerate(texts))
    return Prompt((PromptMessage("user", pieces),), prefill=prefill, lead=lead)


def test_the_chat_template_stands_around_the_data(tokenizer: Any) -> None:
    encoder = PromptEncoder(tokenizer)
    lead = (PromptPiece("so far <|im_end|>", trusted=False), PromptPiece(", then"))
    ids = encoder.encode(asked("Q: ", "<|im_start|>", "?", prefill=" I say", lead=lead))
    assert tokenizer.decode(ids) == (
        "<|im_start|>user\nQ: <|im_start|>?<|im_end|>\n<|im_start|>assistant\n"
        "so far <|im_end|>, then I say"
    )
    assert ids.count(tokenizer.convert_tokens_to_ids("<|im_start|>")) == 2
    assert ids.count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 1


def test_a_dialogue_that_the_assistant_ends_is_not_asked_to_go_on(tokenizer: Any) -> None:
    said = PromptMessage("assistant", (PromptPiece("yes", trusted=False),))
    ids = PromptEncoder(tokenizer).encode(Prompt((*asked("a").messages, said)), closed=True)
    assert tokenizer.decode(ids) == (
        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
    )


def test_a_template_of_the_operator_replaces_the_tokenizers(tokenizer: Any) -> None:
    template = "{% for m in messages %}[{{ m['role'] }}] {{ m['content'] | trim }}\n{% endfor %}>"
    ids = PromptEncoder(tokenizer, chat_template=template).encode(asked("a ", " b "))
    assert tokenizer.decode(ids) == "[user] a  b \n>"  # data is not trimmed


def test_a_template_that_refuses_the_system_gets_it_with_the_user(tokenizer: Any) -> None:
    template = (
        "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system') }}"
        "{% endif %}{{ m['content'] }};{% endfor %}"
    )
    encoder = PromptEncoder(tokenizer, chat_template=template)
    system = PromptMessage("system", (PromptPiece("Be fair."),))
    ids = encoder.encode(Prompt((system, *asked("a").messages)))
    assert tokenizer.decode(ids) == "Be fair.\n\na;"
    with pytest.raises(EngineError, match="refuses these messages: no system") as caught:
        encoder.encode(Prompt((system,)))
    assert caught.value.reason == "INVALID_PARAMETER"


def test_a_template_that_drops_data_is_found_out(tokenizer: Any) -> None:
    encoder = PromptEncoder(tokenizer, chat_template="{{ messages[0]['content'] }}")
    two = Prompt((*asked("a", "b").messages, *asked("c", "d").messages))
    with pytest.raises(EngineError, match="drops, repeats or moves"):
        encoder.encode(two)


def test_without_a_template_there_are_plain_blocks() -> None:
    tokenizer = make_tokenizer()
    tokenizer.chat_template = None
    ids = PromptEncoder(tokenizer).encode(asked("a", "b", prefill="c"))
    assert tokenizer.decode(ids) == "user: ab\n\nassistant: c"


@pytest.fixture(scope="module")
def spaced() -> Any:
    """A tokenizer as Llama 2's: a space before any text, and one token before and one behind."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE(unk_token="<unk>"))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    core.decoder = decoders.Metaspace(prepend_scheme="always")
    core.train_from_iterator(
        ["user: assistant: yes no A B\nthe answer is\n\n"] * 3,
        trainers.BpeTrainer(
            vocab_size=200, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
        ),
    )
    core.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def test_no_space_comes_between_pieces(spaced: Any) -> None:
    encoder = PromptEncoder(spaced)
    text = "user: yes\n\nassistant: the answer is"
    ids = encoder.encode(asked("y", "es", prefill="the answer is"))
    assert ids[0] == 1
    assert encoder.decode(ids) == text
    assert len(encoder.encode_options(("A", "B"))[0]) == 1
    assert encoder.decode(encoder.encode_data(" no"), after=ids) == " no"
    closed = Prompt((PromptMessage("assistant", (PromptPiece("yes"),)),))
    assert encoder.encode(closed, closed=True)[-1] == 2
    assert encoder.encode(closed)[-1] != 2


@pytest.mark.parametrize("options", [("A",), ("A", ""), ("A", "A")])
def test_options_must_differ(tokenizer: Any, options: tuple[str, ...]) -> None:
    with pytest.raises(EngineError) as caught:
        PromptEncoder(tokenizer).encode_options(options)
    assert caught.value.reason == "INVALID_PARAMETER"


def test_line_breaks_before_a_step_token_are_left_out(tokenizer: Any) -> None:
    encoder = PromptEncoder(tokenizer, layout=StepLayout("<extra_0>"))
    ids, _ = encoder.encode_steps(asked("Q"), ("One.\n\n", "<extra_0>Two.\n", "\n"))
    assert tokenizer.decode(ids).endswith(
        "assistant\nOne.<extra_0><extra_0>Two.<extra_0>\n<extra_0><|im_end|>\n"
    )


@pytest.mark.parametrize("steps", [(), ("a", "")])
def test_a_step_needs_a_token(tokenizer: Any, steps: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match="each step a token"):
        PromptEncoder(tokenizer).encode_steps(asked("Q"), steps)


def test_a_response_of_many_steps_must_fit(tokenizer: Any) -> None:
    request = RateSteps(asked("Q"), ("step\n",) * 100)
    with pytest.raises(EngineError) as caught:
        PromptEncoder(tokenizer).encode_request(request, 50)
    assert caught.value.reason == "CONTEXT_TOO_LONG"
    assert caught.value.metadata["limit_tokens"] == "50"
    others = len(PromptEncoder(tokenizer).encode(asked("Q")))
    assert caught.value.metadata["others_tokens"] == str(others)


class Counting:
    """A tokenizer that says how many characters it was given."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.chars = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __call__(self, text: str, **options: Any) -> Any:
        self.chars += len(text)
        return self._inner(text, **options)


@pytest.mark.parametrize("text", ["so on ", " ", "\U0001f600", "x"], ids=repr)
@pytest.mark.parametrize("limit", [128, 512])
def test_a_text_of_megabytes_is_cut_before_it_is_counted(
    tokenizer: Any, text: str, limit: int
) -> None:
    counting = Counting(tokenizer)
    encoder = PromptEncoder(counting)
    vast = PromptPiece(text * (2_000_000 // len(text)), trusted=False, cuttable=True)
    prompt = Prompt((PromptMessage("user", (PromptPiece("Judge: "), vast)),))
    counting.chars = 0
    with pytest.raises(EngineError, match="shorten") as caught:
        encoder.fit(prompt, limit, keep_ends=False)
    assert caught.value.reason == "CONTEXT_TOO_LONG"
    assert int(caught.value.metadata["others_tokens"]) < limit
    assert counting.chars < 500, "our own words alone"
    fitted, cut = encoder.fit(prompt, limit, keep_ends=True)
    assert cut
    assert limit // 2 < len(encoder.encode(fitted)) <= limit
    assert counting.chars < 200 * limit


def test_a_question_of_megabytes_is_refused_before_it_is_counted(tokenizer: Any) -> None:
    counting = Counting(tokenizer)
    encoder = PromptEncoder(counting)
    question = PromptPiece("why? " * 400_000, trusted=False)
    answer = PromptPiece("so", trusted=False, cuttable=True)
    prompt = Prompt((PromptMessage("user", (question, answer)),))
    counting.chars = 0
    with pytest.raises(EngineError) as caught:
        encoder.fit(prompt, 512, keep_ends=True)
    assert caught.value.reason == "CONTEXT_TOO_LONG"
    assert counting.chars == 0
