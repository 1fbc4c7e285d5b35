"""Where the program stands in a chat response. Pure: no network, no process; linear in the text.

Fenced blocks are those of assay.kit.fences. What precedes the last `</think>` is thought, not
answer.
"""

from __future__ import annotations

import ast
import warnings

from assay.kit.fences import fenced_blocks

CHOICES = ("last", "first", "longest", "all", "whole")

_END_OF_THOUGHT = "</think>"
_TAGS = {
    "python": {"python", "py", "python3", "py3", "python2", "ipython", "sage"},
    "c": {"c", "h"},
    "cpp": {"cpp", "c++", "cc", "cxx", "hpp"},
    "java": {"java"},
    "javascript": {"javascript", "js", "node", "mjs", "jsx"},
    "typescript": {"typescript", "ts", "tsx"},
    "go": {"go", "golang"},
    "rust": {"rust", "rs"},
    "bash": {"bash", "sh", "shell", "zsh"},
    "sql": {"sql", "sqlite", "sqlite3", "duckdb"},
    "perl": {"perl", "pl"},
    "ruby": {"ruby", "rb"},
    "php": {"php"},
    "lua": {"lua"},
    "r": {"r", "rscript"},
    "racket": {"racket", "rkt"},
    "csharp": {"csharp", "c#", "cs"},
    "d": {"d", "dlang"},
    "d_ut": {"d", "dlang"},
    "scala": {"scala", "sc"},
    "kotlin": {"kotlin", "kt", "kts"},
    "verilog": {"verilog", "systemverilog", "v", "sv"},
    "coq": {"coq", "rocq", "gallina", "v"},
    "lean": {"lean", "lean4"},
    "smt": {"smt", "smt2", "smtlib", "smtlib2", "smt-lib", "z3"},
}
_MAX_BARE_CHARS = 20_000
_STATEMENTS = (
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Import,
    ast.ImportFrom,
    ast.Assign,
    ast.AugAssign,
    ast.For,
    ast.While,
    ast.If,
    ast.With,
    ast.Try,
)


def extract_code(response: str, language: str, choice: str = "last") -> str | None:
    """The program of a response; None where there is none.

    Args:
        response: what the model wrote.
        language: the program's language, by its name in the sandbox.
        choice: which block: "last", "first", "longest", or "all" of them in order; or "whole",
            the response itself.

    Blocks whose tag is the language's come first; where there are none, those without a tag; where
    there are none, the others. A response without a block is the program itself if it is Python
    that does something, and the language is Python.
    """
    if choice == "whole":
        return response if response.strip() else None
    text = response.rpartition(_END_OF_THOUGHT)[2]
    blocks = fenced_blocks(text)
    if not blocks:
        return text if language == "python" and _does_something(text) else None
    known = _TAGS.get(language, {language})
    fitting = (
        [block for block in blocks if block.tag in known]
        or [block for block in blocks if not block.tag]
        or list(blocks)
    )
    codes = [block.code for block in fitting]
    match choice:
        case "first":
            return codes[0]
        case "longest":
            return max(codes, key=len)
        case "all":
            return "\n".join(codes)
    return codes[-1]


def _does_something(text: str) -> bool:
    """Whether a text is Python that defines, imports, assigns or calls something."""
    if not text.strip() or len(text) > _MAX_BARE_CHARS:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the model's style
            body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(
        isinstance(statement, _STATEMENTS)
        or (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call))
        for statement in body
    )
