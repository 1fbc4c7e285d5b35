"""Mathematics without a server: the grader as a library.

    pip install ./math              # in a checkout; sympy comes with it and nothing else
    python examples/math_library.py

Run in the tests as it stands.
"""

from __future__ import annotations

from assay.math import grade, grade_batch

print(grade(r"So it is $\boxed{\frac{1}{2}}$.", "0.5").reward)
outcomes = grade_batch([r"\boxed{4}", r"\boxed{5}", r"\boxed{4}"], ["4", "4", " "])
print([outcome.reward_or(None) for outcome in outcomes])
