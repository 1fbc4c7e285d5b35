"""Mutants of a program, and inputs on which they may differ from it. Pure; nothing is run here.

Operators after DeMillo, Lipton and Sayward 1978 (IEEE Computer 11:34) and mutmut's: comparisons,
arithmetic, constants, conditions, bounds, and statements that are left out.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from assay.audit.answers.codes import replaced
from assay.audit.probes import AuditRow
from assay.clients.rows.tests import read_tests

_COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult, ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip
_MOST_INPUTS = 80
_MOST_CHARS = 4_000


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """What was changed, and the program with that one change; none of what cannot be parsed."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return
    seen = {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for number in range(len(_changes(node))):
            changed = copy.deepcopy(tree)
            twin = next(one for index, one in enumerate(ast.walk(changed)) if index == place)
            says, change = _changes(twin)[number]
            change()
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text not in seen:
                seen.add(text)
                yield f"line {getattr(node, 'lineno', 0)}: {says}", f"{text}\n"


def _changes(node: ast.AST) -> list[tuple[str, Any]]:  # noqa: PLR0911 - one a construct
    """The changes that a node can have: what each is, and what makes it."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in _COMPARED:
            other = _COMPARED[type(op)]()
            return [("another comparison", lambda: node.ops.__setitem__(0, other))]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _CALCULATED:
            new = _CALCULATED[type(op)]()
            return [("another operator", lambda: setattr(node, "op", new))]
        case ast.Constant(value=bool(value)):
            return [("the opposite", lambda: setattr(node, "value", not value))]
        case ast.Constant(value=int(value)):
            return [
                ("one more", lambda: setattr(node, "value", value + 1)),
                ("one less", lambda: setattr(node, "value", value - 1)),
            ]
        case ast.BoolOp(op=op):
            junction = ast.Or() if isinstance(op, ast.And) else ast.And()
            return [("and for or", lambda: setattr(node, "op", junction))]
        case ast.If() | ast.While() | ast.IfExp() if not isinstance(node.test, ast.Constant):
            turned = ast.UnaryOp(ast.Not(), node.test)
            return [("the condition is turned", lambda: setattr(node, "test", turned))]
        case ast.FunctionDef(body=body) | ast.For(body=body) | ast.If(body=body) if len(body) > 1:
            return [
                ("a statement is left out", lambda i=index: body.__setitem__(i, ast.Pass()))
                for index, one in enumerate(body)
                if isinstance(one, ast.AugAssign | ast.Expr | ast.If | ast.For)
                and not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
            ]
    return []


def inputs_of(row: AuditRow, name: str) -> list[list[Any]]:
    """The arguments with which the tests call a function, as far as they stand there plainly."""
    try:
        suite = read_tests(row.tests)
    except ValueError:
        return []
    tests = row.tests.get("tests", ()) if isinstance(row.tests, dict) else row.tests
    found: list[list[Any]] = [
        test["args"]
        for test in (tests if isinstance(tests, list) else ())
        if isinstance(test, dict) and isinstance(test.get("args"), list)
    ]
    for case in suite.tests:
        if case.HasField("assertions"):
            found += _called(case.assertions.code, {name, "candidate"})
    return [one for one in found if _is_plain(one)]


def _called(code: str, names: set[str]) -> Iterator[list[Any]]:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and isinstance(called, ast.Name) and called.id in names:
            try:
                yield [ast.literal_eval(one) for one in node.args]
            except ValueError:
                continue


def _is_plain(value: Any) -> bool:
    """Whether JSON keeps it as it is."""
    try:
        text = json.dumps(value, allow_nan=False)
        return len(text) <= _MOST_CHARS and bool(json.loads(text) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def more_inputs(known: Sequence[list[Any]], draws: random.Random) -> list[list[Any]]:
    """New arguments, within what the known ones have: their values, and lists in another order.

    Numbers stay between the least and the greatest that stand in that place.
    """
    found: dict[str, list[Any]] = {}
    width = len(known[0]) if known else 0
    if not width or any(len(one) != width for one in known):
        return []
    said = {json.dumps(one) for one in known}
    for _ in range(8 * _MOST_INPUTS):
        if len(found) == _MOST_INPUTS:
            break
        base = copy.deepcopy(draws.choice(list(known)))
        place = draws.randrange(width)
        base[place] = _another([one[place] for one in known], base[place], draws)
        text = json.dumps(base)
        if text not in said:
            found.setdefault(text, base)
    return list(found.values())


def _another(seen: Sequence[Any], value: Any, draws: random.Random) -> Any:
    """Another value of the same type, for one place among the arguments."""
    alike = [one for one in seen if type(one) is type(value)]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and draws.random() < 0.8:
        return draws.randint(min(alike), max(alike))
    if isinstance(value, list) and len(value) > 1 and draws.random() < 0.8:
        changed = list(value)
        way = draws.randrange(4)
        if way == 0:
            changed.reverse()
        elif way == 1:
            del changed[draws.randrange(len(changed))]
        elif way == 2:
            draws.shuffle(changed)
        else:
            changed[draws.randrange(len(changed))] = draws.choice(changed)
        return changed
    return copy.deepcopy(draws.choice(alike))


def stdin_of(row: AuditRow) -> list[str]:
    """What the tests give a program to read, each once, in order."""
    try:
        suite = read_tests(row.tests)
    except ValueError:
        return []
    read = [case.stdio.stdin for case in suite.tests if case.HasField("stdio")]
    return list(dict.fromkeys(one.decode(errors="replace") for one in read))


def more_stdin(known: Sequence[str], draws: random.Random) -> list[str]:
    """New texts of the form of known ones: numbers between the least and greatest of their place.

    A number that may say how many lines or words follow stays.
    """
    found: dict[str, None] = {}
    for _ in range(8 * _MOST_INPUTS if known else 0):
        if len(found) == _MOST_INPUTS:
            break
        base = draws.choice(list(known))
        alike = [one for one in known if _form(one) == _form(base)]
        counts = {str(len(line.split())) for line in base.splitlines()}
        counts |= {str(len(base.splitlines()) - place) for place in range(3)}
        places = [
            place for place, word in enumerate(base.split())
            if re.fullmatch(r"-?\d{1,18}", word) and word not in counts
        ]  # fmt: skip
        if places:
            place = draws.choice(places)
            seen = [int(one.split()[place]) for one in alike]
            if len(seen) == 1:
                seen += [int(base.split()[one]) for one in places]
            word = list(re.finditer(r"\S+", base))[place]
            text = replaced(base, word, str(draws.randint(min(seen), max(seen))))
            if text not in known:
                found[text] = None
    return list(found)


def _form(text: str) -> list[list[bool]]:
    """How many words stand on each line, and which are numbers."""
    return [
        [re.fullmatch(r"-?\d{1,18}", word) is not None for word in line.split()]
        for line in text.splitlines()
    ]


_COMPARE = """
import copy, io, json, signal, sys
def _load(text):
    if not NAME:
        return _program(compile(text, "candidate", "exec"))
    space = {"__name__": "candidate"}
    exec(compile(text, "candidate", "exec"), space)
    return space[NAME]
def _program(code):
    def run(given):
        before = sys.stdin, sys.stdout
        sys.stdin = io.TextIOWrapper(io.BytesIO(given.encode()))
        sys.stdout = io.TextIOWrapper(io.BytesIO())
        try:
            try:
                exec(code, {"__name__": "__main__"})
            except SystemExit:
                pass
            sys.stdout.flush()
            return sys.stdout.buffer.getvalue().decode().split()
        finally:
            sys.stdin, sys.stdout = before
    return run
class _Late(BaseException):
    pass
def _late(*_):
    raise _Late
signal.signal(signal.SIGALRM, _late)
def _call(function, args):
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        value = function(*copy.deepcopy(args))
        return ("value", value)
    except _Late:
        return ("late", None)
    except BaseException as error:
        return ("raised", type(error).__name__)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
right = _load(RIGHT)
known = []
for args in INPUTS:
    kind, value = _call(right, args)
    again = _call(right, args)
    if kind == "value" and again == (kind, value) and value == value:
        known.append((args, value))
print(json.dumps(len(known)))
for text in MUTANTS:
    found = None
    try:
        mutant = _load(text)
    except BaseException:
        mutant = None
    for args, value in known if mutant else ():
        kind, got = _call(mutant, args)
        if kind != "value" or type(got) is not type(value) or got != value:
            if kind == "late" and _call(right, args)[0] == "late":
                continue
            found = {"args": args, "want": repr(value)[:300], "got": repr(got)[:300]}
            break
    print(json.dumps(found))
"""


def comparison(right: str, name: str, changed: Sequence[str], inputs: Sequence[list[Any]]) -> str:
    """A program that says of each mutant where it differs from the right program: JSON lines.

    Without a name whole programs are compared, by the words that they print of a text.

    The first line is how many inputs the right program takes; inputs on which it raises, is late
    or changes its mind are left out.
    """
    head = f"NAME = {name!r}\nRIGHT = {right!r}\nMUTANTS = {list(changed)!r}\n"
    return f"import json\n{head}INPUTS = json.loads({json.dumps(list(inputs))!r})\n{_COMPARE}"
