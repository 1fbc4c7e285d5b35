"""Functions of libraries as programs, under each style of test: right programs, all of them."""

# ruff: noqa: E501 - programs in tables, one in a line

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from assay.clients.execution import TestJob
from forgeries import asserts, unit

# The library's own function as the program, under each style of test: imports, arguments and
# expected values as they stand in the test code.
ALIASES: Final[Mapping[str, tuple[str, str, str]]] = {
    "math.gcd": ("from math import gcd as f\n", "834729105 * 7919, 834729105 * 104729", "834729105"),
    "math.floor": ("from math import floor as f\n", "834729105.75", "834729105"),
    "math.comb": ("import math\nf = math.comb\n", "30, 11", "54627300"),
    "bisect_left": ("from bisect import bisect_left as f\n", "[3, 5, 7919, 834729105], 8000", "3"),
    "sorted": ("f = sorted\n", "[834729105, 3, 7919]", "[3, 7919, 834729105]"),
    "sum": ("f = sum\n", "[834729105, 3]", "834729108"),
    "max": ("f = max\n", "3, 834729105, 17", "834729105"),
    "len": ("f = len\n", "'x' * 7919", "7919"),
    "abs": ("f = abs\n", "-834729105", "834729105"),
    "int": ("f = int\n", "'834729105'", "834729105"),
    "str": ("f = str\n", "834729105", "'834729105'"),
    "list": ("f = list\n", "'asy'", "['a', 's', 'y']"),
    "dict": ("f = dict\n", "[('a', 834729105)]", "{'a': 834729105}"),
    "str.upper": ("f = str.upper\n", "'assay'", "'ASSAY'"),
    "bound join": ("f = '-'.join\n", "['a', 'b', 'c']", "'a-b-c'"),
    "operator.mul": ("from operator import mul as f\n", "7919, 104729", "829348951"),
    "itemgetter": ("import operator\nf = operator.itemgetter(1)\n", "[3, 834729105]", "834729105"),
    "partial": ("import functools\nf = functools.partial(pow, 3)\n", "17", "129140163"),
    "reduce": ("import functools, operator\nf = lambda a: functools.reduce(operator.mul, a)\n", "[7919, 104729]", "829348951"),
    "statistics.mean": ("from statistics import mean as f\n", "[834729104, 834729106]", "834729105"),
    "json.loads": ("from json import loads as f\n", "'[834729105, 3]'", "[834729105, 3]"),
    "re.findall": ("import re\nf = re.compile('[0-9]+').findall\n", "'a834729105b3'", "['834729105', '3']"),
    "numpy.cumsum": ("from numpy import cumsum\ndef f(a):\n    return cumsum(a).tolist()\n", "[3, 834729102]", "[3, 834729105]"),
    "numpy.gcd": ("import numpy\nf = numpy.gcd\n", "7919 * 3, 7919 * 5", "7919"),
    "textwrap.dedent": ("from textwrap import dedent as f\n", "'  assay'", "'assay'"),
    "itertools": ("from itertools import accumulate\nf = lambda a: list(accumulate(a))\n", "[3, 834729102]", "[3, 834729105]"),
}  # fmt: skip
STYLES: Final[Mapping[str, tuple[str, str]]] = {
    "assert": ("assert f({0}) == {1}\n", ""),
    "check": ("def check(candidate):\n    assert candidate({0}) == {1}\n", "f"),
    "helper": ("def same(a, b):\n    return a == b\nassert same(f({0}), {1})\n", ""),
    "helper, entry point": ("def same(a, b):\n    return a == b\nassert same(f({0}), {1})\n", "f"),
    "unittest": (unit("self.assertEqual(f({0}), {1})"), ""),
    "unittest import": (unit("self.assertEqual(f({0}), {1})", "from solution import f"), ""),
    "unittest, entry point": (unit("self.assertEqual(f({0}), {1})"), "f"),
    "unittest module": (unit("self.assertEqual(solution.f({0}), {1})", "import solution"), ""),
    "pytest": ("def test_it():\n    assert f({0}) == {1}\n", ""),
    "pytest import": ("from solution import f\ndef test_it():\n    assert f({0}) == {1}\n", ""),
    "pytest class": ("class TestIt:\n    def test_it(self):\n        assert f({0}) == {1}\n", ""),
}


def alias_jobs() -> dict[str, TestJob]:
    """Library functions as programs, each under each style."""
    jobs = {}
    for name, (source, arguments, expected) in ALIASES.items():
        for style, (code, entry) in STYLES.items():
            text = code.replace("{0}", arguments).replace("{1}", expected)
            kind = asserts(text, entry=entry)
            jobs[f"{name} / {style}"] = kind.job(source, name=f"{name} / {style}")
    return jobs
