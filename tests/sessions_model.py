"""A session in pure Python, without processes: what a real one is compared with.

A small language of cells: assignments, aliases, changes of lists and dicts, files, random numbers,
exceptions. The model runs the same text with `exec`; its files are a dict, its copies `deepcopy`.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import io
import random
from typing import Any

from hypothesis import strategies as st

PRELUDE = """
import random, sys
random.seed(11)
def put(name, text):
    with open(name, "w") as file: file.write(text)
def add(name, text):
    with open(name, "a") as file: file.write(text)
def get(name):
    try:
        with open(name) as file: return file.read()
    except FileNotFoundError: return None
"""
NAMES = "abcd"
FILES = ("f0", "f1", "f2")
DIGEST = (
    f"(sorted((k, repr(v)) for k, v in globals().items() if k in {list(NAMES)!r}), "
    f"[get(name) for name in {FILES!r}], hash(random.getstate()[1]))"
)
Seen = tuple[str, str, str, tuple[str, str]]


class Model:
    """The state of a session, and what a cell would answer."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.variables: dict[str, Any] = {}
        self.random = random.Random(11)
        self.cells = 1  # with the prelude

    def copy(self) -> Model:
        made = Model()
        made.files = dict(self.files)
        made.variables = copy.deepcopy(self.variables)
        made.random.setstate(self.random.getstate())
        made.cells = self.cells
        return made

    def execute(self, code: str) -> Seen:
        """What `Cell.seen` must be."""
        self.cells += 1
        space = {
            **self.variables,
            "random": self.random,
            "put": self.files.__setitem__,
            "add": lambda name, text: self.files.update({name: self.files.get(name, "") + text}),
            "get": self.files.get,
        }
        given = set(space) - set(self.variables)
        out, value = io.StringIO(), None
        end, error = "completed", ("", "")
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(tree, "cell", "exec"), space)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), "cell", "eval"), space)
        except Exception as raised:  # noqa: BLE001  # the cell's own
            end, error = "raised", (type(raised).__name__, str(raised))
        self.variables = {
            name: item for name, item in space.items() if name not in {*given, "__builtins__"}
        }
        return end, out.getvalue(), "" if value is None else repr(value), error


_names = st.sampled_from(NAMES)
_files = st.sampled_from(FILES)
_numbers = st.integers(0, 9)
_values = st.one_of(
    _numbers.map(str),
    st.lists(_numbers, max_size=3).map(repr),
    st.dictionaries(_numbers, _numbers, max_size=2).map(repr),
    st.text("xyzé", max_size=3).map(repr),
    _names,
    st.tuples(_names, _names).map(lambda pair: f"[{pair[0]}, {pair[1]}]"),
    st.just("[random.randint(0, 9) for _ in range(3)]"),
    st.just("random.random()"),
)
_statements = st.one_of(
    st.builds("{} = {}".format, _names, _values),
    st.builds("{} = {}".format, _names, _values),
    st.builds("{}.append({})".format, _names, _values),
    st.builds("{}[{}] = {}".format, _names, _numbers, _values),
    st.builds("{} += {}".format, _names, _values),
    st.builds("del {}".format, _names),
    st.builds("put({!r}, str({}))".format, _files, _names),
    st.builds("add({!r}, '{}')".format, _files, _numbers),
    st.builds("print(get({!r}), {})".format, _files, _values),
    st.builds("random.shuffle({})".format, _names),
    st.builds("raise ValueError({})".format, _numbers),
    st.builds("{}".format, _values),
    st.builds("{} + {}".format, _names, _values),
    st.builds("for _ in range({}): print(random.random())".format, _numbers),
)
cells = st.lists(_statements, min_size=1, max_size=3).map("\n".join)
"""Texts of cells."""
