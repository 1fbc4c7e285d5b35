"""Estimates over problems that were answered several times each, with intervals. Pure.

The claim is about problems like these: the problem was drawn, and its k responses depend on one
another. So every estimate is a mean over problems, and its interval counts problems.

1. pass@k (`assay.kit.runs.stats`) is the unbiased estimate of arXiv 2107.03374, equation 1.
2. The interval of a mean is `assay.kit.runs.stats.mean_over_problems`.
3. The interval of a paired change adds half a flipped response up and half a one down, as Agresti
   and Min 2005 (Statistics in Medicine 24:729) do for pairs of single responses [derivation].
4. Its p is that of flipping the signs of the problems' differences; for single responses this is
   McNemar's exact test.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from assay.kit.runs.stats import Z95

_EXACT_UP_TO = 14  # 2^14 flips are as quickly counted as drawn
_FLIPS = 20_000
_CHUNK = 2_000


def paired_mean_change(
    differences_P: Sequence[float], samples: float, z: float = Z95
) -> tuple[float, float, float]:
    """Mean change over problems answered twice, and the low and high end of its interval.

    Differences are after less before; (0, -1, 1) without any. `samples` are responses that one
    value rests on, at least 1; over k where it is a pass@k.
    """
    problems = len(differences_P)
    if not problems:
        return 0.0, -1.0, 1.0
    total = math.fsum(differences_P)
    n = problems + 2
    squares = math.fsum(d * d for d in differences_P) + 1 / max(1.0, samples)
    half = z * math.sqrt(max(0.0, squares - total * total / n)) / n
    return total / problems, max(-1.0, total / n - half), min(1.0, total / n + half)


def sign_flip_p(differences_P: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided p of "before and after might be exchanged in each problem".

    Counted over all flips of signs where at most 14 problems changed, else over 20,000 drawn ones.
    1 where nothing changed.
    """
    changed_N = np.array([d for d in differences_P if d], dtype=np.float64)
    if not changed_N.size:
        return 1.0
    seen = abs(float(changed_N.sum())) * (1 - 1e-9)  # what rounding makes smaller is as far out
    if changed_N.size <= _EXACT_UP_TO:
        signs_FN = np.array(list(itertools.product((1.0, -1.0), repeat=changed_N.size)))
        return float(np.mean(np.abs(signs_FN @ changed_N) >= seen))
    random, beyond = np.random.default_rng(seed), 0
    for _ in range(_FLIPS // _CHUNK):
        signs_FN = random.integers(0, 2, (_CHUNK, changed_N.size)) * 2.0 - 1.0
        beyond += int(np.sum(np.abs(signs_FN @ changed_N) >= seen))
    return (1 + beyond) / (1 + _FLIPS)
