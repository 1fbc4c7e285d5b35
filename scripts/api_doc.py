"""Writes docs/reference/, one page for each package of the contract, from the protos' own comments.

python scripts/api_doc.py write    writes api.md (the overview) and a page for each package
python scripts/api_doc.py check    exits with 1 when a page differs from the contract
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

import written

PROTOS = written.ROOT / "protos"
FOLDER = written.ROOT / "docs" / "reference"
_WRITTEN = "<!-- Written by scripts/api_doc.py from the comments of the contract; do not edit. -->"
# Numbers of the fields of descriptors, of which the paths to comments are made.
_SERVICES, _METHODS = FileDescriptorProto.SERVICE_FIELD_NUMBER, 2
_MESSAGES, _FIELDS = FileDescriptorProto.MESSAGE_TYPE_FIELD_NUMBER, 2
_NESTED, _NESTED_ENUMS, _ONEOFS = 3, 4, 8
_ENUMS, _VALUES = FileDescriptorProto.ENUM_TYPE_FIELD_NUMBER, 2
_PACKAGE_STATEMENT, _SYNTAX = (2,), (12,)
_SCALARS = {
    number: name.removeprefix("TYPE_").lower()
    for name, number in FieldDescriptorProto.Type.items()
    if name not in {"TYPE_MESSAGE", "TYPE_ENUM", "TYPE_GROUP"}
}
_OURS = "assay.api."


def descriptors() -> list[FileDescriptorProto]:
    """The contract's files with their comments, by name.

    Raises:
        SystemExit: protoc refused a file; it has said which and why.
    """
    sources = sorted(str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto"))
    well_known = files("grpc_tools") / "_proto"
    google_rpc = Path(str(files("google.rpc") / "status.proto")).parents[2]
    with tempfile.TemporaryDirectory() as scratch:
        image = Path(scratch) / "contract.binpb"
        options = [f"-I{PROTOS}", f"-I{well_known}", f"-I{google_rpc}", "--include_source_info"]
        if protoc.main(["protoc", *options, f"--descriptor_set_out={image}", *sources]) != 0:
            raise SystemExit("protoc failed: fix the .proto named above")
        return list(FileDescriptorSet.FromString(image.read_bytes()).file)


class Page:
    """One package as Markdown."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._name = short(file.package)
        self._comments = {
            tuple(place.path): place.leading_comments for place in file.source_code_info.location
        }

    def render(self) -> str:
        """The page."""
        file = self._file
        head = f"# {file.package}\n\n{_WRITTEN}\n\nThe source: [`{Path(file.name).name}`]"
        parts = [f"{head}(../../protos/{file.name}).\n", self._about(_SYNTAX)]
        for number, service in enumerate(file.service):
            parts += self._service(service, (_SERVICES, number))
        if file.message_type:
            parts.append("## Messages\n")
        for number, message in enumerate(file.message_type):
            parts += self._message(message, (_MESSAGES, number), "")
        enums = list(enumerate(file.enum_type))
        if enums:
            parts.append("## Enums\n")
        for number, enum in enums:
            parts.append(self._enum(enum, (_ENUMS, number), ""))
        return "\n".join(part for part in parts if part).rstrip() + "\n"

    def overview(self) -> str:
        """The package's services and calls, in the first sentences of their comments."""
        lines = [f"## {self._file.package}\n", _first(self._about(_SYNTAX)) + "\n"]
        for number, service in enumerate(self._file.service):
            lines += [
                f"| [`{service.name}`]({self._name}.md#{service.name.lower()}) | |",
                "|---|---|",
            ]
            for at, method in enumerate(service.method):
                what = _first(self._about((_SERVICES, number, _METHODS, at)))
                link = f"[`{method.name}`]({self._name}.md#{method.name.lower()})"
                lines.append(f"| {link} | {_cell(what)} |")
            lines.append("")
        if not self._file.service:
            lines.append(f"Messages of all: [{self._name}.md]({self._name}.md).\n")
        return "\n".join(lines)

    def _service(self, service: ServiceDescriptorProto, path: tuple[int, ...]) -> Iterator[str]:
        yield f"## {service.name}\n"
        yield self._about(path)
        for number, method in enumerate(service.method):
            yield f"### {method.name}\n"
            yield f"{self._signature(method)}\n"
            yield self._about((*path, _METHODS, number))

    def _signature(self, method: MethodDescriptorProto) -> str:
        takes, gives = self._type(method.input_type), self._type(method.output_type)
        streams = (method.client_streaming, method.server_streaming)
        words = ["a stream of " if stream else "" for stream in streams]
        return f"Takes {words[0]}{takes}, gives {words[1]}{gives}."

    def _message(
        self, message: DescriptorProto, path: tuple[int, ...], within: str
    ) -> Iterator[str]:
        if message.options.map_entry:
            return
        name = f"{within}{message.name}"
        yield f"### {name}\n"
        yield self._about(path)
        oneofs = [
            f"One of `{oneof.name}`: {_line(self._about((*path, _ONEOFS, number)))}\n"
            for number, oneof in enumerate(message.oneof_decl)
            if not oneof.name.startswith("_")
        ]
        yield from oneofs
        if message.field:
            yield "| field | type | |\n|---|---|---|"
            for number, field in enumerate(message.field):
                about, kind = self._about((*path, _FIELDS, number)), self._kind(field, message)
                yield f"| `{field.name}` = {field.number} | {kind} | {_cell(_line(about))} |"
            yield "\n"
        for number, nested in enumerate(message.nested_type):
            yield from self._message(nested, (*path, _NESTED, number), f"{name}.")
        for number, enum in enumerate(message.enum_type):
            yield self._enum(enum, (*path, _NESTED_ENUMS, number), f"{name}.")

    def _enum(self, enum: EnumDescriptorProto, path: tuple[int, ...], within: str) -> str:
        rows = ["| value | |", "|---|---|"]
        for number, value in enumerate(enum.value):
            about = _cell(_line(self._about((*path, _VALUES, number))))
            rows.append(f"| `{value.name}` = {value.number} | {about} |")
        return f"### {within}{enum.name}\n\n{self._about(path)}\n" + "\n".join(rows) + "\n"

    def _kind(self, field: FieldDescriptorProto, message: DescriptorProto) -> str:
        entries = {nested.name: nested for nested in message.nested_type}
        entry = entries.get(field.type_name.rpartition(".")[2])
        if entry is not None and entry.options.map_entry:
            key, value = (self._kind(part, message) for part in entry.field)
            return f"map of {key} to {value}"
        kind = _SCALARS.get(field.type) or self._type(field.type_name)
        if field.label == FieldDescriptorProto.LABEL_REPEATED:
            return f"list of {kind}"
        if field.proto3_optional:
            return f"{kind}, optional"
        if field.HasField("oneof_index"):
            return f"{kind}, in `{message.oneof_decl[field.oneof_index].name}`"
        return kind

    def _type(self, full: str) -> str:
        """A link to a message or enum of ours, or the name of another's."""
        package, _, name = full.removeprefix(".").rpartition(".")
        if not package.startswith(_OURS):
            return f"`{package}.{name}`"
        page = "" if package == self._file.package else f"{short(package)}.md"
        return f"[`{name}`]({page}#{name.lower()})"

    def _about(self, path: tuple[int, ...]) -> str:
        """A comment as Markdown."""
        text = self._comments.get(path, "")
        lines: list[str] = []
        for raw in text.splitlines():
            line = re.sub(r"^ ", "", raw).rstrip()
            listed = re.match(r" ?- ", line)
            if listed and lines and lines[-1] and not re.match(r"(- |  )", lines[-1]):
                lines.append("")
            unindented = not line.startswith(" ") and not listed
            if unindented and line and lines and re.match(r"(- |  )", lines[-1]):
                lines.append("")
            lines.append(re.sub(r"^ (?=- |  )", "", line))
        return _escaped("\n".join(lines).strip()) + "\n" if lines else ""


def short(package: str) -> str:
    """`reward` of `assay.api.reward.v1`."""
    return package.removeprefix(_OURS).partition(".")[0]


def _first(text: str) -> str:
    """The first sentence."""
    line = _line(text.partition("\n\n")[0])
    return re.split(r"(?<=[.:]) ", line, maxsplit=1)[0].replace(":", ".") if line else ""


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Without what Markdown would read as markup."""
    return re.sub(r"([*<]|(?<!\w)_)", r"\\\1", text)


def render() -> dict[str, str]:
    """Every page by its name in docs/reference."""
    pages = [Page(file) for file in descriptors()]
    names = [f"{short(file.package)}.md" for file in descriptors()]
    head = f"""# The API

{_WRITTEN}

What crosses the wire between a trainer and the services: gRPC, six packages. Each page lists the
calls with their errors and who retries, then the messages. Every server answers reflection and
health besides; the reasons of faults are in [errors.md](errors.md), the Python client is in
[clients.md](clients.md).
"""
    overview = "\n".join([head, *(page.overview() for page in pages)]).rstrip() + "\n"
    return {"api.md": overview} | {
        name: page.render() for name, page in zip(names, pages, strict=True)
    }


def wanted() -> dict[Path, str]:
    """Every page as it should be."""
    return {FOLDER / name: text for name, text in render().items()}


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(__doc__, "the contract", wanted, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
