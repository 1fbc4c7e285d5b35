r"""The slow tier of `math`: what it decides, what it leaves open, and that it stops."""

from __future__ import annotations

import sys

import pytest

from assay.math import Policy, read, symbolic


def ask(answer: str, reference: str, policy: Policy | None = None) -> bool | None:
    policy = policy or Policy()
    comparison = symbolic.compare(read(reference, policy), read(answer, policy), policy)
    assert comparison.tier == symbolic.TIER
    assert comparison.note
    return comparison.equal


@pytest.mark.parametrize(
    ("answer", "reference", "equal"),
    [
        (r"\sum_{k=1}^{n} k", r"\frac{n(n+1)}{2}", True),
        (r"\sum_{k=1}^{n} k", r"\frac{n(n+2)}{2}", False),
        (r"\sum_{k=0}^{n} \binom{n}{k}", "2^n", True),
        (r"\sum_{k=0}^{\infty} \frac{1}{2^k}", "2", True),
        (r"\prod_{k=2}^{n} (1 - \frac{1}{k})", r"\frac{1}{n}", True),
        (r"\int_1^2 \frac{1}{x} dx", r"\ln 2", True),
        (r"\int_1^2 \frac{1}{x} dx", r"\ln 3", False),
        (r"\lim_{n \to \infty} (1 + \frac{1}{n})^n", "e", True),
        ("(n+1)!", "(n+1) n!", True),
        ("(n+1)!", "n n!", False),
        (r"\ln 2 + \ln 3", r"\ln 6", True),
        (r"\sqrt{2} + 10^{-70}", r"\sqrt{2}", False),
        (r"\frac{1}{2^{99}}", r"\frac{1}{2^{98}}", False),
        (r"\{\sqrt{2}, 1\}", r"\{1, \sqrt{2}\}", True),
        (r"\{\sqrt{2}, 1\}", r"\{1, \sqrt{3}\}", False),
        (r"(\sqrt{2}, 1)", r"(1, \sqrt{2})", False),
        (r"(\sqrt{2}, 1)", r"(\sqrt{2}, 1, 1)", False),
        (r"\sqrt{x^2}", "|x|", True),
        ("2x + 4y - 3 = 0", r"y = -\frac{1}{2} x + \frac{3}{4}", True),
        (r"x = \sqrt{8}", r"2\sqrt{2}", True),
        (r"\sqrt[3]{-8}", "-2", True),
        (r"(1+\sqrt{2})^{4033}", r"(1+\sqrt{2})(3+2\sqrt{2})^{2016}", True),
        (r"(1+\sqrt{2})^{4033}", r"(1+\sqrt{2})(3+2\sqrt{2})^{2015}", False),
    ],
)
def test_decided(answer: str, reference: str, equal: bool) -> None:
    assert ask(answer, reference) is equal


@pytest.mark.parametrize(
    ("answer", "reference", "why"),
    [
        (r"\sqrt{x^2}", "x", "equal only where x is positive"),
        (r"\int x^2 dx", r"\frac{x^3}{3}", "no ends"),
        (r"\sum_{k=1}^{10000000} \frac{1}{k}", "1", "too many terms"),
        (r"\sum_{k=1}^{9} \sum_{j=1}^{9} \frac{1}{j+k}", "1", "a sum inside a sum"),
        ("9^{9^{9^9}}", "1", "too great a power"),
        ("((9!)!)!", "1", "too great a factorial"),
        ("(1+x)^{30000}", "x", "too great a power"),
        (r"(10^{4000} \sqrt{2})^{16000}", "1", "too great a power"),
        ("e^{e^{e^{100}}}", "1", "too great a power"),
        ("f(x)", "x", "an unknown function"),
        ("Tuesday", "x", "no mathematics"),
        ("50%", r"\frac{1}{2}", "a convention"),
        ("0.333333333", r"\frac{1}{3}", "a convention"),
        ("a+b+c+d+e_1+f+g", "a b c d f g", "too many variables"),
        ("(1, 2)", "3", "another kind"),
        ("x < 2", "y < 2", "not shown"),
        ("+".join(f"x_{{{k}}}" for k in range(300)), "x", "too long"),
    ],
)
def test_left_open(answer: str, reference: str, why: str) -> None:
    assert ask(answer, reference) is None, why


def test_a_tolerance_is_not_for_this_tier() -> None:
    assert ask("1", r"\sqrt{2}", Policy(relative_tolerance=0.5)) is None
    assert ask("1", r"\sqrt{2}", Policy(decimals=0)) is None


def test_names_are_stripped_as_the_policy_says() -> None:
    assert ask("x = 5", "5", Policy(strip_name=False)) is None


def test_lists_are_ordered_as_the_policy_says() -> None:
    assert ask(r"\sqrt{2}, 1", r"1, \sqrt{2}") is True
    assert ask(r"\sqrt{2}, 1", r"1, \sqrt{2}", Policy(ordered_lists=True)) is False


def test_it_stops_by_itself_and_the_hook_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symbolic, "_CALLS", 2_000)
    comparison = symbolic.compare(read("1"), read(r"\int_0^1 \sin(\frac{1}{x}) dx"))
    assert comparison.equal is None
    assert "2000 steps" in comparison.note
    assert sys.getprofile() is None


def _nothing() -> None:
    """A call to be counted."""


class _Noisy:
    """Makes calls where Python ignores exceptions."""

    def __del__(self) -> None:
        for _ in range(100):
            _nothing()


def test_a_budget_that_ends_where_exceptions_are_ignored_ends_the_block() -> None:
    hook = sys.unraisablehook
    made = []

    def work() -> None:
        with symbolic._budget(50):
            _Noisy()
            for _ in range(1_000):
                _nothing()
                made.append(1)

    with pytest.raises(symbolic._Spent):
        work()
    assert len(made) < 2
    assert sys.getprofile() is None
    assert sys.unraisablehook is hook


def test_a_budget_that_ends_with_the_block_is_spent() -> None:
    with pytest.raises(symbolic._Spent), symbolic._budget(50):
        _Noisy()


def test_equal_items_get_equal_answers_whatever_came_before() -> None:
    pair = (r"\sum_{k=0}^{\infty} \frac{1}{k!}", "e")
    first = ask(*pair)
    ask(r"\lim_{x \to 0} \frac{\sin x}{x}", "1")
    assert ask(*pair) is first
