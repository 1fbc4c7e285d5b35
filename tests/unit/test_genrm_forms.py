"""Texts held to a form: the parts, the tables over a vocabulary, and rows that a guide leads."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.genrm.engines.forms import LINE_CHARS, TextForm, critique_form, one_of
from assay.genrm.engines.worker.guiding import FormGuide
from assay.genrm.engines.worker.vocabulary import FormTable, FormTables, TokenBytes, token_bytes
from assay.genrm.judges.critique import parse_critique
from genrm_engine_support import Alone, Worker
from genrm_support import make_model, make_tokenizer

TOKENIZER = make_tokenizer()
TOKENS = token_bytes(TOKENIZER)
assert TOKENS is not None
WORDS = st.text(alphabet="ab <1\u6b63", min_size=1, max_size=4)
OPTIONS = st.lists(WORDS, min_size=2, max_size=4, unique=True).filter(
    lambda some: one_of(some) is not None
)


def led(form: TextForm, seed: int, max_tokens: int = 400, heat: float = 3.0) -> tuple[str, Any]:
    """What a model of random opinions writes under a form."""
    assert TOKENS is not None
    guide = FormGuide(FormTable(form.parts, TOKENS), max_tokens)
    draw = torch.Generator().manual_seed(seed)
    written = b""
    for _ in range(max_tokens):
        logits = torch.randn(len(TOKENS.of), generator=draw) * heat
        narrowed = guide.narrow(logits)
        token = int(torch.multinomial(narrowed.softmax(-1), 1, generator=draw))
        written += TOKENS.of[token] or b"?"
        guide.advance(token)
        if guide.done:
            break
    return written.decode(errors="replace"), guide


@given(OPTIONS, WORDS, st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_of_the_form(options: list[str], end: str, seed: int) -> None:
    form = TextForm(("so: ", tuple(options), end))
    text, guide = led(form, seed)
    assert text in {f"so: {option}{end}" for option in options}
    assert re.fullmatch(form.pattern, text)
    assert 0.0 <= guide.mass <= 1.0
    ((before, found),) = form.choices(text)
    assert (before, found) == ("so: ", tuple(options))


@pytest.mark.slow
@given(st.integers(1, 5), st.integers(0, 10**6))
@settings(max_examples=20, deadline=None)
def test_a_critique_under_its_form_is_always_read(steps: int, seed: int) -> None:
    text, guide = led(critique_form(steps), seed)
    assert guide.done
    assert (found := parse_critique(text, steps)) is not None
    assert len(found.steps) == steps
    assert all(note.startswith(f"Check {n}: ") for n, note in enumerate(found.notes, start=1))


def test_a_form_ends_within_its_tokens() -> None:
    for limit in (75, 90, 150):
        for seed in range(3):
            text, guide = led(critique_form(2), seed, limit)
            assert guide.done, text


def test_a_token_that_spells_several_parts_at_once_is_followed() -> None:
    tokens = TokenBytes([b"a", b"b", b"\n", b"x\nA", b"x", b"A", b"!\nA!", None, b"!"])
    table = FormTable((None, "\nA", ("!", "?")), tokens)
    state = table.start
    assert {0, 3, 4, 6} <= set(table.allowed(state, hurry=False).tolist())
    assert 2 not in table.allowed(state, hurry=False).tolist(), "a line is not empty"
    path = table.path(state, 6)
    assert path[-1] == table.final
    assert not table.verdicts.isdisjoint(path)
    assert 7 not in table.allowed(state, hurry=False).tolist(), "a special token is none"


def test_hurry_goes_to_the_end() -> None:
    assert TOKENS is not None
    table = FormTable((None, "\nA:", (" x", " y")), TOKENS)
    assert table.left[table.start] == len("?\nA: x")
    inside = table.path(table.start, TOKENIZER.convert_tokens_to_ids("a"))[-1]
    ids = table.allowed(inside, hurry=True).tolist()
    assert all((TOKENS.of[token] or b"").startswith(b"\n") for token in ids)
    assert ids


@pytest.mark.parametrize(
    "parts",
    [
        (None,),
        (None, (" a", " b")),
        (None, "x"),
        (("a",),),
        (("a", "ab"),),
        (("", "a"),),
        ("", ("a", "b")),
    ],
)
def test_a_form_that_leaves_a_choice_of_parts_is_refused(parts: Any) -> None:
    with pytest.raises(ValueError, match=r"line|verdicts|fixed"):
        TextForm(parts)


def test_options_that_begin_with_one_another_have_no_form() -> None:
    assert one_of((" 1", " 10")) is None
    assert one_of((" 1",)) is None
    assert one_of(("1", "2"), end="</answer>") == TextForm((("1", "2"), "</answer>"))


def test_the_pattern_is_one_that_engines_read() -> None:
    form = TextForm((("<1>", "a.b"), "\n|", None, "\n."))
    assert form.pattern == f"(?:<1>|a\\.b)\\n\\|[^\\n]{{1,{LINE_CHARS}}}\\n\\."
    assert re.fullmatch(form.pattern, "a.b\n|anything (at all)\n.")
    assert not re.fullmatch(form.pattern, "axb\n|\n.")
    assert form.choices("nothing") == ()


def test_vocabularies_of_other_kinds_hold_nothing() -> None:
    class Slow:
        backend_tokenizer = None

    assert token_bytes(Slow()) is None


def test_pieces_of_sentences_are_read_with_their_bytes() -> None:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    ascii_ = [chr(n) for n in range(32, 127) if chr(n) != " "]
    vocabulary = {f"<0x{n:02X}>": n for n in range(256)}
    for piece in ("\u2581", *ascii_, "St", "Ste", "Step", "\u2581co"):
        vocabulary.setdefault(piece, len(vocabulary))
    merges = [("S", "t"), ("St", "e"), ("Ste", "p")]
    core = Tokenizer(models.BPE(vocabulary, merges, byte_fallback=True, unk_token=None))
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    core.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    found = token_bytes(PreTrainedTokenizerFast(tokenizer_object=core))
    assert found is not None
    assert found.of[vocabulary["Step"]] == b"Step"
    assert found.of[vocabulary["\u2581co"]] == b" co"
    assert found.of[10] == b"\n"


# --- in the worker ---


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("model") / "causal")


@pytest.fixture(scope="module")
def worker(folder: Path) -> Worker:
    made = Worker(folder, "generative")
    tokens = token_bytes(made.tokenizer)
    assert tokens is not None
    made.tables = FormTables(tokens)
    made.fresh()
    return made


def job(worker: Worker, held_to: TextForm, **changed: Any) -> dict[str, Any]:
    ids = worker.encoder.encode_data("Is it right? Verdict:")
    body = {"kind": "write", "ids": ids, "max_tokens": 60, "temperature": 1.0, "top_p": 1.0}
    return {**body, "seed": 0, "stop": (), "form": list(held_to.parts), **changed}


def test_shares_and_frequencies_are_those_of_a_direct_pass(worker: Worker, folder: Path) -> None:
    options = (" A", " B", " because")
    form = one_of(options)
    assert form is not None
    asked = job(worker, form)
    answers = worker.ask([asked | {"seed": seed} for seed in range(300)])
    alone = Alone(folder, "generative")
    assert {answer["text"] for answer in answers} <= set(options)
    assert all(answer["finish"] == "stop" for answer in answers)
    ids = tuple(asked["ids"])
    spelled = [worker.encoder.encode_data(option) for option in options]
    own = [math.exp(alone.logprob(ids, one)) for one in spelled]
    single = [option for option, tokens in zip(options, spelled, strict=True) if len(tokens) == 1]
    first = alone.logits(ids)[-1].softmax(-1)
    allowed = float(first[list({tokens[0] for tokens in spelled})].sum())
    for answer in answers:
        if answer["text"] in single:
            assert answer["mass"] == pytest.approx(allowed, rel=1e-3)
        assert answer["completion"] == len(spelled[options.index(answer["text"])])
    for option, chance in zip(options, own, strict=True):
        seen = sum(answer["text"] == option for answer in answers) / len(answers)
        assert seen == pytest.approx(chance / sum(own), abs=0.15)


def test_rows_with_a_form_and_without_go_side_by_side(worker: Worker) -> None:
    form = critique_form(2)
    free = job(worker, form, form=None, max_tokens=20)
    held = job(worker, form, max_tokens=300)
    (alone,) = worker.ask([free])
    random.seed(0)
    mixed = worker.ask([held, free, held | {"seed": 1}])
    assert mixed[1]["text"] == alone["text"]
    assert "mass" not in mixed[1]
    for answer in (mixed[0], mixed[2]):
        assert parse_critique(answer["text"], 2) is not None
        assert 0.0 <= answer["mass"] < 1.0
    again = worker.ask([held, held | {"seed": 1}])
    assert [one["text"] for one in again] == [mixed[0]["text"], mixed[2]["text"]]


def test_too_few_tokens_for_a_form_are_a_text_that_ran_out(worker: Worker) -> None:
    (answer,) = worker.ask([job(worker, critique_form(30), max_tokens=12)])
    assert answer["finish"] == "length"


def test_a_row_that_gives_way_goes_on_where_it_was(worker: Worker, folder: Path) -> None:
    form = critique_form(2)
    asked = [job(worker, form, max_tokens=200, seed=seed) for seed in range(4)]
    together = [one["text"] for one in worker.ask(asked)]
    worker.fresh(max_batch_tokens=300)
    crowded = worker.ask(asked)
    worker.fresh()
    assert [one["text"] for one in crowded] == together
