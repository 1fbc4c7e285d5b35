"""A full disk, as each library that writes reports it: a file system of 64 KiB."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from assay.trainer.records.full_disk import said_when_full

SMALL = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
PROGRAM = """
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from assay.trainer.errors import TrainingStoppedError
from assay.trainer.records.full_disk import said_when_full

folder, many = Path(sys.argv[1]), {"a": torch.zeros(2**18)}
writers = {
    "file": lambda: (folder / "file").write_bytes(bytes(2**20)),
    "safetensors": lambda: save_file(many, folder / "many.safetensors"),
    "torch": lambda: torch.save(many, folder / "many.pt"),
}
for name, write in writers.items():
    try:
        with said_when_full(Path("runs/a")):
            write()
    except TrainingStoppedError as error:
        print(name, error)
    for left in folder.iterdir():
        left.unlink()
"""


@pytest.mark.slow
def test_a_full_disk_is_one_line_that_says_how_to_go_on(tmp_path: Path) -> None:
    mount = 'mount -t tmpfs -o size=64k tmpfs "$0"'
    if subprocess.run([*SMALL, mount, tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("no user namespaces, or none that may mount")
    shell = [*SMALL, f'{mount} && exec "$@"', tmp_path, sys.executable, "-c", PROGRAM, tmp_path]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["file", "safetensors", "torch"]
    for line in lines:
        assert "the disk of runs/a is full" in line
        assert line.endswith("`assay train --resume runs/a`")


@pytest.mark.parametrize(
    "error",
    [FileNotFoundError(2, "no such file"), RuntimeError("shapes do not match"), KeyError("x")],
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    with pytest.raises(type(error)), said_when_full(Path("runs/a")):
        raise error
