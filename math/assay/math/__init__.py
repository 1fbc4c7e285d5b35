r"""Judges final answers of mathematics, in one line and without a server.

>>> from assay.math import grade
>>> grade(r"So it is $\boxed{\frac{1}{2}}$.", "0.5").reward
1.0

An outcome is a `Judgement` or a `Fault`, never both: a fault says that nobody could judge, and has
no reward. `docs/use/math-library.md` shows this in TRL, verl and lm-evaluation-harness; the
service's verifier `math` is the same code. sympy is loaded in a worker process, when an answer
needs it.
"""

from assay.math.compare import Equivalence, compare
from assay.math.extraction import FoundAnswer
from assay.math.grading import extract, grade, grade_batch, prepare
from assay.math.outcomes import AskFailedError, Fault, FaultError, Judgement, Outcome
from assay.math.policy import Policy
from assay.math.reading import Reading, read

__all__ = [
    "AskFailedError",
    "Equivalence",
    "Fault",
    "FaultError",
    "FoundAnswer",
    "Judgement",
    "Outcome",
    "Policy",
    "Reading",
    "compare",
    "extract",
    "grade",
    "grade_batch",
    "prepare",
    "read",
]
