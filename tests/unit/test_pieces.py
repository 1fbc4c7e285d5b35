"""Vocabularies on disk: the pieces of a text's tokens, joined, are the text."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.kit.errors import ConfigError
from assay.kit.pieces import BYTE_LEVEL, PLAIN, SENTENCE_PIECE, Pieces, pieces_of
from assay.kit.runs.rollouts import path_for, read_vocabulary, write_rollouts, write_vocabulary
from tokenizers_support import FAMILIES, TEXTS
from trainer_support import tiny_tokenizer

KINDS = {
    "byte-level": BYTE_LEVEL,
    "characters": PLAIN,
    "metaspace": SENTENCE_PIECE,
    "byte-fallback": SENTENCE_PIECE,
}


def kept(tokenizer: Any) -> Pieces:
    """As a viewer on another machine has it."""
    made = pieces_of(tokenizer)
    assert made is not None
    with tempfile.TemporaryDirectory() as name:
        write_vocabulary(Path(name) / "rollouts", made)
        read = read_vocabulary(Path(name))
        assert read == made
        assert read_vocabulary(Path(name) / "rollouts") == made
    return made


@pytest.fixture(scope="module", params=KINDS)
def family(request: pytest.FixtureRequest) -> tuple[str, Any, Pieces]:
    tokenizer = FAMILIES[request.param]()
    return request.param, tokenizer, kept(tokenizer)


@settings(max_examples=60)
@given(text=st.one_of(st.sampled_from(TEXTS), st.text(st.characters(codec="utf-8"), max_size=60)))
def test_joined_pieces_are_the_text(family: tuple[str, Any, Pieces], text: str) -> None:
    name, tokenizer, pieces = family
    if any(special in text for special in ("<pad>", "<end>", "<think>", "<unk>")):
        return
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    joined = b"".join(pieces.of[number] or b"" for number in ids)
    texts = pieces.texts(ids)
    assert len(texts) == len(ids)
    assert "".join(texts) == joined.decode("utf-8", "replace")
    if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in ids:
        return  # it has no token for it
    if KINDS[name] == SENTENCE_PIECE:
        # it writes one space before a text, and U+2581 is its space
        assert joined.decode().removeprefix(" ") == text.replace("\u2581", " ").removeprefix(" ")
    else:
        assert joined == text.encode()


@given(st.lists(st.integers(-3, 400), max_size=40))
def test_any_ids_have_texts(ids: list[int]) -> None:
    pieces = pieces_of(FAMILIES["byte-level"]())
    assert pieces is not None
    texts = pieces.texts(ids)
    assert len(texts) == len(ids)
    for number, text in zip(ids, texts, strict=True):
        if not 0 <= number < len(pieces.of):
            assert text.endswith(f"<|{number}|>")


def test_special_tokens_are_marked(family: tuple[str, Any, Pieces]) -> None:
    _, tokenizer, pieces = family
    assert pieces.special == set(tokenizer.all_special_ids) | {
        number for number, one in tokenizer.added_tokens_decoder.items() if one.special
    }
    assert pieces.texts([tokenizer.eos_token_id]) == ["<end>"]


def test_others_stand_for_themselves() -> None:
    words = pieces_of(FAMILIES["word-piece"]())
    assert words is not None
    assert words.kind == PLAIN
    assert any(piece and piece.startswith(b"##") for piece in words.of)
    tiny = kept(tiny_tokenizer())
    assert "".join(tiny.texts(tiny_tokenizer()("1+2=3")["input_ids"])) == "1+2=3"


def test_a_tokenizer_that_does_not_tell_its_tokens_leaves_no_file() -> None:
    from rollouts_support import NumberTokenizer

    assert pieces_of(NumberTokenizer()) is None


def test_a_run_without_one_or_with_half_of_one_has_none(tmp_path: Path) -> None:
    assert read_vocabulary(tmp_path) is None
    write_vocabulary(tmp_path, Pieces(PLAIN, [b"a" * 1000, None], frozenset()))
    path = tmp_path / "vocabulary.json.gz"
    path.write_bytes(path.read_bytes()[:-12])
    assert read_vocabulary(tmp_path) is None


def test_one_of_a_later_version_is_refused(tmp_path: Path) -> None:
    write_rollouts(tmp_path / "vocabulary.json.gz", [{"version": 2}])
    with pytest.raises(ConfigError, match="version 2"):
        read_vocabulary(tmp_path)
    assert path_for(tmp_path, 1).name != "vocabulary.json.gz"
