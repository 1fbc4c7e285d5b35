"""A corpus in a file, and the search in it by BM25 (bm25s, MIT).

A line is a document: {"id": "d1", "title": "Paris", "text": "..."}; `title` may be missing. All of
it is held in memory. Words of one letter count, English stop words do not; nothing is stemmed.
Equal scores keep the order of the file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from assay.kit.errors import ConfigError

_TOKENS = r"(?u)\b\w+\b"
_STOP_WORDS = "english"
_QUERY_CHARS = 2_000
_ID_CHARS = 128
_SAID_EVERY_S = 5.0
_SEAL = "assay.json"


@dataclass(frozen=True, slots=True)
class CorpusDocument:
    """One document of a corpus."""

    id: str
    title: str
    text: str


class Corpus:
    """Documents by id, and the search in them; may be asked by several threads."""

    def __init__(self, documents: Sequence[CorpusDocument], index: Any) -> None:
        self.documents = documents
        self._by_id: Mapping[str, CorpusDocument] = MappingProxyType(
            {one.id: one for one in documents}
        )
        self._index = index

    def document(self, name: str) -> CorpusDocument | None:
        """The document of an id; None for none."""
        return self._by_id.get(name)

    def find(self, query: str, count: int) -> list[CorpusDocument]:
        """At most `count` documents that share a word with the query, the best first."""
        np = import_module("numpy")
        words = _words([query[:_QUERY_CHARS]])[0]
        known = self._index.get_tokens_ids(words) if words else []
        if not known or count < 1:
            return []
        scores = self._index.get_scores_from_ids(known)
        found = np.flatnonzero(scores > 0)
        best = found[np.lexsort((found, -scores[found]))][:count]
        return [self.documents[int(place)] for place in best]


def open_corpus(path: str | Path, *, keep_index: bool = False) -> Corpus:
    """Reads a corpus and indexes it.

    With `keep_index` the index is kept beside the file, under the digest of what it was made of: a
    corpus that changed is indexed anew.

    Raises:
        ConfigError: there is no such file, a line is no document (its number is said), or bm25s is
            not installed.
    """
    where = Path(path)
    if not str(path):
        raise ConfigError("name the corpus: a file of {id, title, text}, one a line (corpus)")
    content = _content(where)
    documents = list(_documents(where, content))
    if not documents:
        raise ConfigError(f"the corpus {where} has no document")
    bm25s = _library()
    facts = f"{bm25s.__version__}\n{_TOKENS}\n{_STOP_WORDS}\n".encode()
    digest = hashlib.sha256(facts + content).hexdigest()
    folder = where.with_name(f"{where.name}.bm25-{digest[:16]}")
    index = _kept(bm25s, folder, digest, len(documents)) if keep_index else None
    if index is None:
        index = _indexed(bm25s, where, documents)
        if keep_index:
            _keep(index, folder, digest)
    return Corpus(documents, index)


def documents_of(path: Path) -> Iterator[CorpusDocument]:
    """The documents of a file, one after another; ConfigError as `open_corpus`."""
    return _documents(path, _content(path))


def _content(where: Path) -> bytes:
    try:
        return where.read_bytes()
    except OSError as error:
        raise ConfigError(f"the corpus {where} cannot be read: {error.strerror}") from error


def _library() -> Any:
    try:
        found = import_module("bm25s")
    except ImportError as error:
        raise ConfigError(
            "a corpus is searched by bm25s: pip install 'assay-rl-clients[environments]'"
        ) from error
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for every word of its own
    return found


def _documents(where: Path, content: bytes) -> Iterator[CorpusDocument]:
    lines: dict[str, int] = {}
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line.strip():
            continue
        document = _document(line, f"{where}, line {number}")
        if document.id in lines:
            raise ConfigError(
                f"{where}, line {number}: the id {document.id!r} is that of line "
                f"{lines[document.id]}"
            )
        lines[document.id] = number
        yield document


def _document(line: bytes, place: str) -> CorpusDocument:
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{place}: no JSON in UTF-8: {str(error)[:200]}") from None
    if not isinstance(row, dict):
        raise ConfigError(f"{place}: no object of id, title and text")
    name, title, text = row.get("id"), row.get("title", ""), row.get("text")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not re.fullmatch(rf"\S{{1,{_ID_CHARS}}}", name):
        raise ConfigError(f"{place}: the id is no text of 1 to {_ID_CHARS} visible characters")
    if not isinstance(text, str) or not text.strip():
        raise ConfigError(f"{place}: the text is missing or blank")
    if not isinstance(title, str):
        raise ConfigError(f"{place}: the title is no text")
    return CorpusDocument(name, title, text)


def _words(texts: list[str]) -> list[list[str]]:
    tokens: list[list[str]] = _library().tokenize(
        texts,
        token_pattern=_TOKENS,
        stopwords=_STOP_WORDS,
        return_ids=False,
        show_progress=False,
    )
    return tokens


def _indexed(bm25s: Any, where: Path, documents: Sequence[CorpusDocument]) -> Any:
    began_s = said_s = time.monotonic()
    words: list[list[str]] = []
    step = 5_000
    for start in range(0, len(documents), step):
        part = documents[start : start + step]
        words += _words([f"{one.title}\n{one.text}" for one in part])
        if time.monotonic() - said_s > _SAID_EVERY_S:
            said_s = time.monotonic()
            _say(f"indexing {where}: {len(words)} of {len(documents)} documents read")
    if not any(words):
        raise ConfigError(f"the corpus {where} has no word that could be searched for")
    index = bm25s.BM25()
    index.index(words, show_progress=False)
    took_s = time.monotonic() - began_s
    if took_s > _SAID_EVERY_S:
        _say(f"indexed {where}: {len(documents)} documents in {took_s:.0f} s")
    return index


def _kept(bm25s: Any, folder: Path, digest: str, count: int) -> Any:
    """The index in a folder; None where there is none, or another one."""
    try:
        seal = json.loads((folder / _SEAL).read_text(encoding="utf-8"))
        index = bm25s.BM25.load(folder)
    except (OSError, ValueError, KeyError, TypeError, EOFError):
        return None
    whole = isinstance(seal, dict) and seal.get("digest") == digest
    return index if whole and index.scores["num_docs"] == count else None


def _keep(index: Any, folder: Path, digest: str) -> None:
    beside = folder.with_name(f"{folder.name}.{os.getpid()}.new")
    try:
        shutil.rmtree(beside, ignore_errors=True)
        index.save(beside, show_progress=False)
        (beside / _SEAL).write_text(json.dumps({"digest": digest}), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        beside.replace(folder)
    except OSError as error:  # another process was first, or the disk is full: it is in memory
        shutil.rmtree(beside, ignore_errors=True)
        _say(f"the index was not kept at {folder}: {error}")


def _say(line: str) -> None:
    """Tells whoever waits, as the other notes of a run do."""
    print(f"note: {line}", file=sys.stderr)
