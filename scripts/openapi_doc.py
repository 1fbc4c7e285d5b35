"""Keeps reward_server/assay/reward_server/http/schemas.json equal to the contract.

python scripts/openapi_doc.py write    rewrites the schemas
python scripts/openapi_doc.py check    exits with 1 when they differ
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorSet
from grpc_tools import protoc

import written
from assay.api.reward.v1 import reward_pb2
from assay.kit.http import openapi

SCHEMAS = written.ROOT / "reward_server" / "assay" / "reward_server" / "http" / "schemas.json"
_ROOTS = ("BatchScoreRequest", "BatchScoreResponse", "Result", "ListVerifiersResponse")
PROTOS = written.ROOT / "protos"
_MESSAGE, _FIELD, _NESTED = 4, 2, 3


def comments() -> dict[str, str]:
    """Full names of messages and fields to the first paragraph of what the .proto files say."""
    google = [
        files("grpc_tools") / "_proto",
        Path(str(files("google.rpc") / "status.proto")).parents[2],
    ]
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "all.pb"
        arguments = ["protoc", f"-I{PROTOS}", *(f"-I{one}" for one in google)]
        sources = sorted(map(str, PROTOS.glob("assay/api/**/*.proto")))
        told = [f"--descriptor_set_out={target}", "--include_source_info", *sources]
        if protoc.main([*arguments, *told]) != 0:
            raise SystemExit("protoc failed")
        for file in FileDescriptorSet.FromString(target.read_bytes()).file:
            names = _names(file.package, list(file.message_type), (_MESSAGE,))
            for place in file.source_code_info.location:
                name = names.get(tuple(place.path))
                if name and place.leading_comments:
                    found[name] = _first(place.leading_comments)
    return found


def render() -> str:
    """The schemas as they are kept."""
    messages = [reward_pb2.DESCRIPTOR.message_types_by_name[name] for name in _ROOTS]
    schemas = openapi.schemas_of(messages, comments())
    return json.dumps(schemas, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the contract", lambda: {SCHEMAS: render()}, arguments)


def _names(
    scope: str, messages: list[DescriptorProto], path: tuple[int, ...]
) -> dict[tuple[int, ...], str]:
    found: dict[tuple[int, ...], str] = {}
    for index, message in enumerate(messages):
        here, name = (*path, index), f"{scope}.{message.name}"
        found[here] = name
        for number, field in enumerate(message.field):
            found[(*here, _FIELD, number)] = f"{name}.{field.name}"
        found |= _names(name, list(message.nested_type), (*here, _NESTED))
    return found


def _first(comment: str) -> str:
    return " ".join(comment.strip().split("\n\n")[0].split())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
