"""Cells of ours, by which a sandbox's default interpreter does what the peer's daemon does. Pure.

They run where the program runs, so what they answer is its claim like all else.
"""

from __future__ import annotations

from collections.abc import Mapping

_HOME = '__import__("os").path.expanduser("~")'


def call(body: str, depth: int = 1, **paths: str) -> str:
    """An expression: `body` as JSON, with paths by name, below the working directory."""
    given = [f"_os.path.normpath(_os.path.join(_home, {path!r}))" for path in paths.values()]
    inner = f"(lambda {', '.join(paths)}: _json.dumps({body}))({', '.join(given)})"
    values = f'__import__("os"), __import__("json"), {_HOME}, {depth}'
    return f"(lambda _os, _json, _home, _depth: {inner})({values})"


def _entry(path: str) -> str:
    """The expression of an entry's facts; `path` is one itself."""
    return f"""(lambda at, own: {{
 "path": _os.path.relpath(at, _home), "size": own.st_size, "mode": own.st_mode & 0o7777,
 "type": "FILE_TYPE_DIRECTORY" if _os.path.isdir(at) else "FILE_TYPE_FILE",
 "permissions": __import__("stat").filemode(own.st_mode), "owner": str(own.st_uid),
 "group": str(own.st_gid), "isSymlink": _os.path.islink(at), "modifiedTime":
 __import__("time").strftime("%Y-%m-%dT%H:%M:%SZ", __import__("time").gmtime(own.st_mtime))
}})({path}, _os.lstat({path}))"""


STAT = f'{{"entry": {_entry("path")}}}'
LIST = f"""{{"entries": [{_entry("_os.path.join(root, name)")}
 for root, folders, files in _os.walk(path) for name in sorted(folders + files)
 if _os.path.relpath(root, path).count("/") + (root != path) < _depth]}}
 if _os.path.isdir(path) else 1 / 0"""
MAKE = "[_os.makedirs(path), {}][1]"
MOVE = f"""[_os.makedirs(_os.path.dirname(target), exist_ok=True), _os.rename(path, target),
 {{"entry": {_entry("target")}}}][2]"""
REMOVE = """[(_os.remove if _os.path.islink(path) or not _os.path.isdir(path)
 else __import__("shutil").rmtree)(path), {}][1]"""


def command(arguments: list[str], folder: str, environment: Mapping[str, str]) -> str:
    """Runs a program whose output is the cell's; its value is the exit code."""
    return (
        f'__import__("subprocess").run({arguments!r}, stdin=-3, '
        f'cwd=__import__("os").path.join({_HOME}, {folder!r}), '
        f'env={{**__import__("os").environ, **{dict(environment)!r}}}).returncode'
    )


def go_to(folder: str, language: str) -> str:
    """Makes a folder the working directory."""
    if language == "bash":
        return f"mkdir -p {_quoted(folder)} && cd {_quoted(folder)}"
    return (
        f'[__import__("os").makedirs({folder!r}, exist_ok=True), '
        f'__import__("os").chdir({folder!r})][1]'
    )


def set_environment(variables: Mapping[str, str | None], language: str) -> str:
    """Sets variables, or unsets those that are None."""
    if language == "bash":
        return "\n".join(
            f"unset {_quoted(name)}"
            if value is None
            else f"export {_quoted(name)}={_quoted(value)}"
            for name, value in variables.items()
        )
    given = {name: value for name, value in variables.items() if value is not None}
    gone = [name for name, value in variables.items() if value is None]
    return (
        f'[__import__("os").environ.update({given!r}), '
        f'[__import__("os").environ.pop(name, None) for name in {gone!r}]] and None'
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
