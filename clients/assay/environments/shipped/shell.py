"""`bash`: a shell with a workspace; the last answer is judged, or in `repository` the files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from assay.environments.cells import is_path
from assay.environments.environment import Proof, ToolError, ToolResult, tool
from assay.environments.shipped.python import ProgramEnvironment, ProgramSettings
from assay.environments.types import ToolCall

_FILE_BYTES = 1 << 20


class ShellEnvironment(ProgramEnvironment):
    """A bash shell that lives for the episode, and tools that read and change its files."""

    name = "bash"
    Settings = ProgramSettings
    language = "bash"

    @tool
    async def bash(self, command: str) -> ToolResult:
        """Runs a command in a bash shell and shows its output and exit code.

        The shell lives on: its folder, variables and files stay for the next call.

        Args:
            command: what to run; may have several lines.
        """
        assert self.session is not None  # noqa: S101  # made by reset
        return await self.session.show(command)

    @tool
    async def write_file(self, path: str, content: str) -> ToolResult:
        """Writes a file, in place of what it held; folders are made.

        Args:
            path: relative to the working folder.
            content: all of the file's text.
        """
        assert self.session is not None  # noqa: S101  # made by reset
        _check(content)
        await self.session.write({_relative(path): content})
        return ToolResult(f"wrote {path}")

    @tool
    async def edit_file(self, path: str, old: str, new: str) -> ToolResult:
        """Replaces a text in a file; it must occur exactly once.

        Args:
            path: relative to the working folder.
            old: the text to replace.
            new: what takes its place.
        """
        assert self.session is not None  # noqa: S101  # made by reset
        _check(new)
        where = _relative(path)
        content = await self.session.read(where)
        if content is None:
            raise ToolError(f"there is no file {path[:200]!r}")
        try:
            text = content.decode()
        except UnicodeDecodeError:
            raise ToolError(f"{path[:200]!r} is no text in UTF-8") from None
        count = text.count(old) if old else 0
        if count != 1:
            raise ToolError(f"the text to replace occurs {count} times; give one that occurs once")
        changed = text.replace(old, new)
        _check(changed)
        await self.session.write({where: changed})
        return ToolResult(f"changed {path}")

    @classmethod
    def proofs(cls, settings: ProgramSettings) -> Sequence[Proof]:
        """The shell keeps its state, and files that tools change are those that it sees."""
        del settings
        row = {"prompt": "How many?", "reference": "42", "verifier": "exact"}
        write = ToolCall("write_file", {"path": "a/n.txt", "content": "6 * 6"})
        edit = ToolCall("edit_file", {"path": "a/n.txt", "old": "6 * 6", "new": "6 * 7"})
        sums = ToolCall("bash", {"command": "cd a; n=$(cat n.txt)"})
        show = ToolCall("bash", {"command": 'test "$((n))" = 42 && exit 3'})
        return (
            Proof(row, ((write, edit), sums, show, "42"), 1.0),
            Proof(row, (ToolCall("bash", {"command": "false"}), "41"), 0.0),
        )


def _relative(path: str) -> str:
    """A path in the working folder, as sessions name it.

    Raises:
        ToolError: it leads elsewhere, or is none.
    """
    found = "/".join(PurePosixPath(path.removeprefix("/box/")).parts)
    if not found or not is_path(found):
        shown = path[:200].encode("utf-8", "replace").decode()
        raise ToolError(f"{shown!r} is no path in the working folder")
    return found


def _check(content: str) -> None:
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        raise ToolError("the text holds half a character (a lone surrogate)") from None
    if size > _FILE_BYTES:
        raise ToolError(f"the file would have {size} bytes; at most {_FILE_BYTES} are taken")
