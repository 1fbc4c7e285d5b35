"""Laws of the journal: nothing is lost uncounted, order is kept, the size is bounded."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.reward_server.domain import Fault
from assay.reward_server.journal import entries
from assay.reward_server.journal.entries import Entry, row_of
from assay.reward_server.journal.store import BATCH_ROWS, MIN_LIMIT_BYTES, Store
from assay.reward_server.journal.writer import Journal
from assay.reward_server.pending import PendingScore
from assay.viewer.journals.comparison import VerifierComparison
from assay.viewer.journals.reader import Filter, Reader, Record
from journal_support import LATE, SPANNED, filled, judgement, settled

TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
LABELS = st.dictionaries(st.sampled_from(["run", "a.b-c", "_x"]), TEXTS, max_size=3)
OUTCOMES = st.one_of(
    st.just(LATE),
    st.just(SPANNED),
    st.builds(Fault, st.sampled_from(["QUEUE_FULL", "ITEM_TIMEOUT"]), TEXTS),
    st.builds(judgement, st.floats(-1, 1), st.sampled_from(["correct", "incorrect"])),
)
SETTLED = st.builds(
    settled, TEXTS, OUTCOMES, verifier=st.sampled_from(["exact", "math"]), response=TEXTS,
    prompt=TEXTS, reference=TEXTS, labels=LABELS,
)  # fmt: skip


def read(path: Path, chosen: Filter | None = None) -> list[Record]:
    with Reader(path) as reader:
        return list(reader.each(chosen))


@settings(max_examples=12)
@given(st.lists(st.lists(SETTLED, max_size=6), max_size=8))
def test_every_outcome_is_an_entry_in_its_order(offers: list[list[PendingScore]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        state = asyncio.run(filled(path, offers))
        records = read(path)
    said = [settled for items in offers for settled in items]
    assert (state.written, state.dropped, state.waiting) == (len(said), 0, 0)
    assert [record["id"] for record in records] == list(range(1, len(said) + 1))
    for ticket_, record in zip(said, records, strict=True):
        outcome = ticket_.outcome
        assert ticket_.item is not None
        assert (record["item_id"], record["response"]) == (
            ticket_.item_id,
            ticket_.item.candidate.text,
        )
        assert record["labels"] == ticket_.labels
        if isinstance(outcome, Fault):
            assert (record["fault"], record["explanation"]) == (outcome.reason, outcome.message)
            assert record["reward"] is record["verdict"] is None
        else:
            assert outcome is not None
            assert (record["verdict"], record["reward"]) == (outcome.verdict, outcome.reward)
            assert record["fault"] is None
            assert len(record["spans"]) == len(outcome.spans)


@settings(max_examples=12)
@given(st.lists(st.integers(1, 6), max_size=12), st.integers(1, 12))
def test_what_does_not_fit_is_counted_and_the_file_tells(sizes: list[int], room: int) -> None:
    offers = [[settled(f"{n}.{m}") for m in range(size)] for n, size in enumerate(sizes)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        state = asyncio.run(filled(path, offers, queue_items=room))
        records = read(path)
    assert state.written + state.dropped == sum(sizes)
    assert len(records) == state.written
    kept = {record["item_id"] for record in records}
    for offer in offers:
        assert len(kept & {made.item_id for made in offer}) in {0, len(offer)}, "all or none"
    if sizes and max(sizes) > room:
        assert state.dropped


@settings(max_examples=20)
@given(
    st.lists(SETTLED, min_size=1, max_size=12),
    st.builds(
        Filter,
        verifier=st.sampled_from(["", "exact", "math"]),
        verdict=st.sampled_from(["", "correct", "partial"]),
        only=st.sampled_from(["", "judgements", "faults"]),
        text=TEXTS,
        least_reward=st.none() | st.floats(-1, 1),
        labels=LABELS.map(lambda labels: tuple(labels.items())) | st.just((("run", "a"),)),
    ),
)
def test_a_filter_finds_what_a_look_at_each_entry_finds(
    items: list[PendingScore], chosen: Filter
) -> None:
    def lowered(text: str) -> str:
        return "".join(c.lower() if c.isascii() else c for c in text)

    def meets(record: Record) -> bool:
        texts = [record["response"], record["reference"], record["answer"], record["explanation"]]
        texts += [content for _, content in record["prompt"]]
        texts += ["user"]  # a prompt's roles are searched too
        return (
            (not chosen.verifier or record["verifier"] == chosen.verifier)
            and (not chosen.verdict or record["verdict"] == chosen.verdict)
            and (not chosen.only or (chosen.only == "faults") == (record["fault"] is not None))
            and (
                chosen.least_reward is None
                or (record["reward"] is not None and record["reward"] >= chosen.least_reward)
            )
            and set(chosen.labels) <= set(record["labels"].items())
            and any(lowered(chosen.text) in lowered(text) for text in texts if text is not None)
        )

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "journal")
        asyncio.run(filled(path, [items]))
        everything, found = read(path), read(path, chosen)
        with Reader(path) as reader:
            assert reader.last(1000, chosen) == found
            assert sum(rate.judgements + rate.faulted for rate in reader.rates(chosen)) == len(
                found
            )
    sought = [record for record in everything if meets(record)]
    # JSON's own characters around a prompt are found as well; nothing that meets is missed.
    assert [record for record in found if meets(record)] == sought
    if len(chosen.text) != 1:
        assert all(record in sought or chosen.text.strip('[]",') != chosen.text for record in found)


@pytest.mark.parametrize("chars", [1, 3000, 4100, 32_768])
def test_the_file_and_its_log_stay_below_the_limit(tmp_path: Path, chars: int) -> None:
    path = tmp_path / "journal"
    store = Store(path, MIN_LIMIT_BYTES)
    row = row_of(settled("x", response="\u4e2d" * chars), "", 0.0)
    batch = [row] * max(1, min(BATCH_ROWS, 2**20 // (4 * chars)))
    written = largest = 0
    while store.expired < 3 * len(batch) and written < 60_000:
        assert store.append(batch)
        written += len(batch)
        largest = max(largest, sum(f.stat().st_size for f in tmp_path.glob("journal*")) - 32_768)
    store.close()
    assert largest <= MIN_LIMIT_BYTES
    with Reader(path) as reader:
        summary = reader.summary()
        assert summary.entries == written - store.expired == written - summary.expired
        assert store.expired
        ids = [record["id"] for record in reader.each()]
    assert ids == list(range(store.expired + 1, written + 1)), "the oldest went"


def test_a_lower_limit_shrinks_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = Store(path, 2 * MIN_LIMIT_BYTES)
    batch = [row_of(settled("x", response="a" * 30_000), "", 0.0)] * 30
    for _ in range(10):
        assert store.append(batch)
    store.close()
    assert path.stat().st_size > MIN_LIMIT_BYTES
    store = Store(path, MIN_LIMIT_BYTES)
    assert store.append(batch)
    store.close()
    assert path.stat().st_size <= MIN_LIMIT_BYTES


def test_a_reader_that_stays_does_not_let_the_log_grow(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    store = Store(path, 2 * MIN_LIMIT_BYTES)
    batch = [row_of(settled("x", response="a" * 30_000), "", 0.0)] * 30
    assert store.append(batch)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN")
    holder.execute("SELECT count(*) FROM entries").fetchone()
    kept = [store.append(batch) for _ in range(6)]
    assert kept[0]
    assert not kept[-1]
    assert sum(f.stat().st_size for f in tmp_path.glob("journal*")) < 2 * MIN_LIMIT_BYTES
    holder.execute("COMMIT")
    assert store.append(batch), "and goes on when the reader is gone"
    holder.close()
    store.close()


def test_an_entry_is_its_fields_and_texts_are_cut() -> None:
    long = settled("x", response="r" * 40_000, prompt="p" * 40_000, reference="s" * 40_000)
    entry = Entry(*row_of(long, "call", 1.0))  # type: ignore[arg-type]
    assert entry.response == "r" * entries.MAX_RESPONSE_CHARS
    assert entry.response_chars == 40_000
    assert len(entry.prompt) <= entries.MAX_PROMPT_CHARS + 20
    assert len(entry.reference or "") == entries.MAX_REFERENCE_CHARS
    assert (entry.request_id, entry.verifier, entry.verdict) == ("call", "exact", "correct")
    other = row_of(settled("x", response="r" * 40_001, prompt="p" * 40_000), "", 1.0)
    assert Entry(*other).item_key != entry.item_key, "the key is of the whole text"  # type: ignore[arg-type]
    assert len(fields(Entry)) == len(other)


async def test_two_verifiers_on_the_same_items(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    offers = [
        [
            settled("a", judgement(0.0, "incorrect"), response="41"),
            settled("b", response="42"),
            settled("c", LATE, response="43"),
            settled("d", response="only one saw it"),
            settled("b", judgement(0.0, "incorrect"), response="42", reference="another item"),
        ],
        [
            settled("a", judgement(1.0), verifier="math", response="41"),
            settled("b", verifier="math", response="42"),
            settled("c", verifier="math", response="43"),
        ],
        [settled("a2", judgement(0.25, "partial"), response="41")],
    ]
    await filled(path, offers)
    with Reader(path) as reader:
        result = VerifierComparison("exact", "math").add(reader.pairs("exact", "math"))
    assert result.verdicts == {("partial", "correct"): 1, ("correct", "correct"): 1}
    assert (result.judged, result.faulted, result.differ) == (2, 1, 1)
    assert result.rewards == [1.25, 2.0]
    assert result.faults[0] == {"ITEM_TIMEOUT": 1}
    [(first, second)] = result.examples
    assert (first["item_id"], second["item_id"]) == ("a2", "a")


async def test_offers_never_wait_for_a_file_that_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path, MIN_LIMIT_BYTES, queue_items=10)
    await journal.start()
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    for n in range(1000):
        journal.offer([settled(str(n))])
    state = journal.state()
    assert state.dropped >= 980
    blocker.execute("ROLLBACK")
    blocker.close()
    await journal.close()
    state = journal.state()
    assert state.written + state.dropped == 1000
    assert state.trouble == "closed", "it was never off"
    assert path.stat().st_mode & 0o777 == 0o600
