"""Builds the generated code under protos/ and checks the contract.

`python scripts/protos.py generate` writes *_pb2.py, *_pb2.pyi, *_pb2_grpc.py and *_pb2_grpc.pyi
beside each .proto. `check` fails when the committed code differs from what `generate` would write,
when buf's lint finds something, or when the contract breaks the released one
(protos/released.binpb). `release` makes today's contract the released one: run it when a change is
meant to be kept.
"""

from __future__ import annotations

import filecmp
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTOS = ROOT / "protos"
RELEASED = PROTOS / "released.binpb"
SUFFIXES = ("_pb2.py", "_pb2.pyi", "_pb2_grpc.py", "_pb2_grpc.pyi")


def sources() -> list[str]:
    """Every .proto of the contract, relative to protos/."""
    return sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))


def includes() -> list[str]:
    """Where protoc finds the contract, google/protobuf and google/rpc."""
    well_known = files("grpc_tools") / "_proto"
    google_rpc = Path(str(files("google.rpc") / "status.proto")).parents[2]
    return [f"-I{PROTOS}", f"-I{well_known}", f"-I{google_rpc}"]


def compile_protos(*options: str) -> None:
    """Runs protoc on the whole contract.

    Raises:
        SystemExit: protoc refused a file; it has said which and why.
    """
    if protoc.main(["protoc", *includes(), *options, *sources()]) != 0:
        raise SystemExit("protoc failed: fix the .proto named above")


def generate(out: Path) -> None:
    """Writes the generated code under `out`."""
    compile_protos(
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--plugin=protoc-gen-mypy={Path(sys.executable).parent / 'protoc-gen-mypy'}",
        f"--plugin=protoc-gen-mypy_grpc={Path(sys.executable).parent / 'protoc-gen-mypy_grpc'}",
        f"--mypy_out=quiet:{out}",
        f"--mypy_grpc_out=quiet:{out}",
    )


def drift() -> list[str]:
    """Generated files that are missing, stale, or left over, relative to protos/."""
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch)
        generate(fresh)
        wanted = {str(path.relative_to(fresh)) for path in fresh.rglob("*_pb2*")}
        held = {
            str(path.relative_to(PROTOS))
            for path in PROTOS.rglob("*_pb2*")
            if path.name.endswith(SUFFIXES)
        }
        changed = {
            name
            for name in wanted & held
            if not filecmp.cmp(fresh / name, PROTOS / name, shallow=False)
        }
        return sorted((wanted ^ held) | changed)


def build_image(path: Path) -> None:
    """Writes the contract, with its comments, as a descriptor set that buf reads."""
    compile_protos(f"--descriptor_set_out={path}", "--include_imports", "--include_source_info")


def buf(*arguments: str) -> int:
    """Runs buf and returns its exit status."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "buf"), *arguments], cwd=ROOT, check=False
    ).returncode


def check() -> int:
    """Drift, lint and breaking changes. Returns the exit status."""
    stale = drift()
    for name in stale:
        print(f"protos/{name} differs from the contract: run `make protos` and commit the result")
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "contract.binpb"
        build_image(image)
        failures = bool(stale)
        failures |= buf("lint", str(image), "--config", "buf.yaml") != 0
        failures |= (
            buf("breaking", str(image), "--against", str(RELEASED), "--config", "buf.yaml") != 0
        )
    return int(failures)


def main(arguments: list[str]) -> int:
    """Dispatches one of the three verbs."""
    match arguments:
        case ["generate"]:
            generate(PROTOS)
            return 0
        case ["check"]:
            return check()
        case ["release"]:
            build_image(RELEASED)
            return 0
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
