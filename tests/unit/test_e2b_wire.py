"""E2B's shapes: lines of a cell, uploads, paths, and the cells that change files."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.api.session.v1 import session_pb2
from assay.compat.cells import Decoders
from assay.compat.e2b import code, wire
from assay.compat.fields import BadField

STDERR = session_pb2.OUTPUT_STREAM_STDERR


def lines(event: session_pb2.ExecuteResponse, decoders: Decoders | None = None) -> list[Any]:
    found = wire.cell_lines(event, decoders or Decoders(), 7)
    return [json.loads(line) for line in found]


@given(st.text(max_size=30), st.lists(st.integers(0, 90), max_size=6))
def test_text_arrives_whole_wherever_it_is_cut(text: str, cuts: list[int]) -> None:
    data, decoders, said = text.encode("utf-8", "replace"), Decoders(), ""
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(edges):
        chunk = session_pb2.OutputChunk(stream=STDERR, data=data[start:end])
        for line in lines(session_pb2.ExecuteResponse(output=chunk), decoders):
            assert line["type"] == "stderr"
            said += line["text"]
    assert said.encode() == data


def test_a_result_has_the_peers_names_and_says_which_is_the_value() -> None:
    shown = session_pb2.DisplayValue(
        data={"text/plain": b"'x'", "image/png": b"\x89PNG", "application/x-mine": b"\x00"}
    )
    [display] = lines(session_pb2.ExecuteResponse(display=shown))
    assert display == {
        "type": "result",
        "text": "x",
        "png": "iVBORw==",
        "extra": {"application/x-mine": "AA=="},
        "is_main_result": False,
    }
    ended = session_pb2.CellResult(end="CELL_END_COMPLETED", value=shown)
    value, count = lines(session_pb2.ExecuteResponse(result=ended))
    assert (value["is_main_result"], value["png"]) == (True, "iVBORw==")
    assert count == {"type": "number_of_executions", "execution_count": 7}


def test_every_end_but_the_whole_one_is_an_error() -> None:
    for end in session_pb2.CellEnd.values()[1:]:
        ended = session_pb2.CellResult(end=end, error={"name": "ValueError", "message": "no"})
        errors = [
            line
            for line in lines(session_pb2.ExecuteResponse(result=ended))
            if line["type"] == "error"
        ]
        assert len(errors) == (end != session_pb2.CELL_END_COMPLETED)


def form(files: dict[str, bytes], boundary: str) -> bytes:
    """An upload, as its client writes it."""
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n".encode()
        + data
        + b"\r\n"
        for name, data in files.items()
    ]
    return b"".join(parts) + f"--{boundary}--\r\n".encode()


@given(
    st.dictionaries(
        st.from_regex(r"[ab]{1,2}(/[ab]){0,2}", fullmatch=True),
        st.binary(max_size=40) | st.sampled_from([b"\r\n", b"--", b"\r\n--b", b"a\r\n\r\nb"]),
        min_size=1,
        max_size=3,
    )
)
def test_an_upload_is_read_as_it_was_written(files: dict[str, bytes]) -> None:
    kind = "multipart/form-data; boundary=4f1c6a0e9b"
    assert wire.uploads(form(files, "4f1c6a0e9b"), kind, "") == files
    [(name, data), *_] = files.items()
    assert wire.uploads(form({"x": data}, "4f1c6a0e9b"), kind, name) == {name: data}
    assert wire.uploads(data, "application/octet-stream", name) == {name: data}


def test_paths_are_those_of_the_working_directory() -> None:
    for path in ("a/b", "/home/user/a/b", "./a/./b", "/mnt/a/b", "x/../a/b"):
        assert wire.relative(path) == "a/b"
        assert wire.absolute(wire.relative(path)) == "/home/user/a/b"
    assert wire.relative("") == wire.relative("/home/user/") == "."
    for path in ("/etc/passwd", "..", "/home/user/../other", "/home/users"):
        with pytest.raises(BadField):
            wire.relative(path)


@given(st.binary(max_size=30))
def test_what_is_no_envelope_is_refused(body: bytes) -> None:
    try:
        json.dumps(wire.opened(body))
    except BadField:
        return
    assert wire.opened(wire.envelope({"a": 1})) == {"a": 1}


def evaluated(home: Path, expression: str) -> Any:
    """What an expression is in an interpreter of its own, elsewhere than at home."""
    ran = subprocess.run(
        [sys.executable, "-c", f"print({expression})"],
        env={**os.environ, "HOME": str(home)},
        cwd="/",
        capture_output=True,
        check=False,
        text=True,
    )
    return json.loads(ran.stdout) if ran.returncode == 0 else ran.stderr.splitlines()[-1]


def test_cells_of_ours_change_files(tmp_path: Path) -> None:
    tmp_path.joinpath("d/e").mkdir(parents=True)
    tmp_path.joinpath("d/it's").write_bytes(b"xyz")

    def do(body: str, depth: int = 1, **paths: str) -> Any:
        return evaluated(tmp_path, code.call(body, depth, **paths))

    entry = do(code.STAT, path="d/it's")["entry"]
    assert (entry["path"], entry["size"], entry["type"]) == ("d/it's", 3, "FILE_TYPE_FILE")
    listed = [[each["path"] for each in do(code.LIST, depth, path=".")["entries"]]
              for depth in (1, 2)]  # fmt: skip
    assert listed == [["d"], ["d", "d/e", "d/it's"]]
    assert do(code.MOVE, path="d/it's", target="f/g")["entry"]["path"] == "f/g"
    assert tmp_path.joinpath("d").is_dir()
    assert do(code.MAKE, path="h/i") == {}
    assert do(code.MAKE, path="h/i").startswith("FileExistsError")
    assert do(code.REMOVE, path="f") == do(code.REMOVE, path="h/i") == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d", "h"]
    assert do(code.STAT, path="f").startswith("FileNotFoundError")
    assert do(code.LIST, path="f").startswith("ZeroDivisionError")


def test_a_command_runs_at_home_with_its_variables(tmp_path: Path) -> None:
    tmp_path.joinpath("d").mkdir()
    script = code.command(["/bin/sh", "-c", 'pwd; echo "$Q"; exit 3'], "d", {"Q": "it's"})
    ran = subprocess.run(
        [sys.executable, "-c", f"print({script})"],
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert ran.stdout.splitlines() == [str(tmp_path / "d"), "it's", "3"]


@pytest.mark.parametrize("language", ["python", "bash"])
def test_variables_are_set_and_taken_back(language: str, tmp_path: Path) -> None:
    here = str(tmp_path / "it's")
    show = {
        "python": 'import os; print(os.environ.get("A"), os.environ.get("B"), os.getcwd())',
        "bash": 'echo "${A-None}" "${B-None}" "$PWD"',
    }[language]
    steps = [
        code.set_environment({"A": "it's", "B": "2"}, language),
        code.go_to(here, language),
        show,
        code.set_environment({"A": None}, language),
        show,
    ]
    program = [sys.executable, "-c"] if language == "python" else ["bash", "-c"]
    ran = subprocess.run([*program, "\n".join(steps)], capture_output=True, check=True, text=True)
    assert ran.stdout.splitlines() == [f"it's 2 {here}", f"None 2 {here}"]
