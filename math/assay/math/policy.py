"""The knobs of the comparison, with defaults for reinforcement learning: strict where it pays."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """What counts as the same answer.

    Attributes:
        relative_tolerance: how far a number may be from the reference, as a share of it; 0 (the
            default) leaves only the tolerance of floating point, 1e-11, for irrational values, and
            what is made of roots, powers, pi and e must agree to forty digits. What was written in
            digits is compared exactly, also where the reference is itself a rounded decimal: 0.59
            is then not 0.5941 unless this or `decimals` says so.
        decimals: compare numbers rounded to this many decimals; None does not round. The way to
            judge references that are themselves rounded.
        approximation_digits: a decimal with at least this many significant digits stands for the
            irrational or endless number that it rounds or truncates; 0 never.
        percent: `unit` treats the sign like a unit (28, 28% and 0.28 answer 28%; 0.28 and 28%
            answer 0.28; never a factor 100 without a sign), `strict` takes it for its value.
        missing_unit: whether an answer without a unit passes where the reference has one, and an
            answer with one where the reference has none. A wrong unit never passes.
        missing_base: whether 4210 answers 4210_5.
        ordered_lists: whether bare lists are compared in order. Tuples always are, sets never.
        decimal_comma: whether 1,22 can be read as 1.22.
        case_sensitive_text: whether upper and lower case differ in words; in symbols they do.
        symbol_case: whether upper and lower case differ in variables.
        strip_name: whether `x = 5` answers `5` and the other way round; only a bare name is ever
            stripped.
        allow_rational_unreduced: whether 2/4 answers 1/2.
    """

    relative_tolerance: float = 0.0
    decimals: int | None = None
    approximation_digits: int = 7
    percent: str = "unit"
    missing_unit: bool = True
    missing_base: bool = True
    ordered_lists: bool = False
    decimal_comma: bool = True
    case_sensitive_text: bool = False
    symbol_case: bool = True
    strip_name: bool = True
    allow_rational_unreduced: bool = True
