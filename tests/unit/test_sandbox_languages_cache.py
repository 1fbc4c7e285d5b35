"""The cache of compilations, and archives out of boxes: damage, growth, hostile content."""

from __future__ import annotations

import io
import os
import tarfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.sandbox.domain import BoxFile, CapturedOutput, SandboxFault
from assay.sandbox.languages.cache import CompileCache, Compiled, _decode, _encode
from assay.sandbox.languages.products import TREE_BYTES, TREE_FILES, unpack_tree


def key(number: int) -> str:
    return f"{number:02x}" * 32


def compiled(size: int = 10, *, failed: bool = False) -> Compiled:
    return Compiled(b"p" * size, failed, 1 if failed else 0, CapturedOutput(b"words", 9), 0.25, 0.5)


COMPILED = st.builds(
    Compiled,
    product=st.binary(max_size=300),
    failed=st.booleans(),
    exit_code=st.integers(0, 255),
    output=st.builds(CapturedOutput, st.binary(max_size=100), st.integers(0, 2**40)),
    cpu_s=st.floats(0, 1e6),
    wall_s=st.floats(0, 1e6),
)


@given(COMPILED)
def test_an_entry_comes_back_as_it_was(entry: Compiled) -> None:
    assert _decode(_encode(entry)) == entry


@given(COMPILED, st.data())
def test_no_damage_goes_unseen(entry: Compiled, data: st.DataObject) -> None:
    raw = bytearray(_encode(entry))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"."):
        _decode(bytes(raw))


def test_what_is_kept_is_found_and_shared(tmp_path: Path) -> None:
    one, two = CompileCache(tmp_path), CompileCache(tmp_path)
    assert one.get(key(1)) is None
    one.put(key(1), compiled())
    one.put(key(2), compiled(0, failed=True))
    assert two.get(key(1)) == compiled()
    assert two.get(key(2)) == compiled(0, failed=True)


@pytest.mark.parametrize("damage", [b"", b"x", b"ASSAYCC1" + b"\xff" * 200])
def test_a_damaged_entry_is_dropped(tmp_path: Path, damage: bytes) -> None:
    cache = CompileCache(tmp_path)
    cache.put(key(1), compiled())
    (path,) = tmp_path.glob("entries/*/*")
    path.write_bytes(damage)
    assert cache.get(key(1)) is None
    assert not path.exists()


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, limit_bytes=100_000)
    for number in range(9):
        cache.put(key(number), compiled(10_000))
        path = tmp_path / "entries" / key(number)[:2] / key(number)
        os.utime(path, (number, number))
    assert cache.get(key(0)) is not None  # used again, and so the youngest
    for number in range(10, 13):
        cache.put(key(number), compiled(10_000))
    left = {number for number in range(13) if cache.get(key(number)) is not None}
    assert {0, 10, 11, 12} <= left
    assert 1 not in left
    assert sum(path.stat().st_size for path in tmp_path.glob("entries/*/*")) <= 100_000


def test_an_entry_too_large_for_the_cache_is_not_kept(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, limit_bytes=1000)
    cache.put(key(1), compiled(500))
    assert cache.get(key(1)) is None


def test_drafts_that_nobody_finished_are_swept(tmp_path: Path) -> None:
    folder = tmp_path / "entries" / "aa"
    folder.mkdir(parents=True)
    old, new = folder / "x.1-2.draft", folder / "y.1-2.draft"
    for draft in (old, new):
        draft.write_bytes(b"half")
    os.utime(old, (1, 1))
    CompileCache(tmp_path).put(key(1), compiled())
    assert (old.exists(), new.exists()) == (False, True)


def test_a_cache_that_cannot_write_is_only_slow(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = CompileCache(tmp_path)
    (tmp_path / "entries" / key(1)[:2]).write_bytes(b"a file where a folder should be")
    cache.put(key(1), compiled())
    assert cache.get(key(1)) is None
    assert "cannot be kept" in caplog.text


def test_two_supervisors_may_write_the_same_at_once(tmp_path: Path) -> None:
    caches = [CompileCache(tmp_path, limit_bytes=400_000) for _ in range(4)]
    ends_s = time.monotonic() + 0.5
    wrong: list[object] = []

    def work(cache: CompileCache) -> None:
        number = 0
        while time.monotonic() < ends_s:
            number = (number + 1) % 5
            cache.put(key(number), compiled(40_000 + number))
            found = cache.get(key(number))
            if found not in (None, compiled(40_000 + number)):
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(cache,)) for cache in caches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert not list(tmp_path.glob("entries/*/*.draft"))


# Archives -----------------------------------------------------------------------------------------


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tree:
        for info, content in members:
            tree.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def member(
    name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = len(content), kind, link
    return info, content


def test_a_tree_comes_out_below_its_prefix() -> None:
    raw = archive(
        member("./", kind=tarfile.DIRTYPE), member("./A.class", b"a"), member("./p/B.class", b"b")
    )
    expected = (BoxFile("classes/A.class", b"a"), BoxFile("classes/p/B.class", b"b"))
    assert unpack_tree(raw, "classes") == expected
    assert [file.path for file in unpack_tree(raw, "")] == ["A.class", "p/B.class"]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"nothing like an archive" * 100,
        archive(member("../a", b"x")),
        archive(member("/a", b"x")),
        archive(member("a/../../b", b"x")),
        archive(member("a", kind=tarfile.SYMTYPE, link="/etc/passwd")),
        archive(member("a", b"x"), member("b", kind=tarfile.LNKTYPE, link="a")),
        archive(member("a", kind=tarfile.FIFOTYPE)),
        archive(member("a", kind=tarfile.CHRTYPE)),
        archive(*(member(f"f{number}") for number in range(TREE_FILES + 1))),
        archive(member("a", b"x" * 2000))[:1000],
    ],
    ids=range(11),
)  # fmt: skip
def test_a_hostile_archive_is_a_fault(raw: bytes) -> None:
    with pytest.raises(SandboxFault) as caught:
        unpack_tree(raw, "")
    assert caught.value.reason == "INTERNAL"


def test_an_archive_that_claims_too_much_is_not_read() -> None:
    info = tarfile.TarInfo("a")
    info.size = TREE_BYTES + 1
    with pytest.raises(SandboxFault):
        unpack_tree(info.tobuf() + b"x" * 512, "")


@given(st.binary(max_size=2000))
def test_no_archive_breaks_the_reader(raw: bytes) -> None:
    reason = "INTERNAL"
    try:
        unpack_tree(raw, "")
    except SandboxFault as fault:
        reason = fault.reason
    assert reason == "INTERNAL"
