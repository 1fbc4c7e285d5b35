"""A model of a run's score by the weights of its data, and its best weights (arXiv 2505.24871).

    quadratic   a + b w + w C w, which over weights that sum to 1 is w Q w with a symmetric Q
    linear      b w, which a and Q then add nothing to

Of MoDoMoDo's pages the surrogate and its use were at hand; the ridge towards the mean score, the
choice between the two and the exact maximum are derivations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Form = Literal["linear", "quadratic"]


@dataclass(frozen=True, slots=True)
class MixtureScore:
    """A fitted score of weights.

    Attributes:
        mean: of the scores that it was fitted to.
        q_DD: symmetric; the score of weights w is mean + w q w.
    """

    form: Form
    mean: float
    q_DD: Array

    def of(self, weights_ND: Array) -> Array:
        """The score of each row of weights, (N,)."""
        scores: Array = self.mean + np.einsum("nd,de,ne->n", weights_ND, self.q_DD, weights_ND)
        return scores


def terms(sources: int, form: Form) -> int:
    """Coefficients of the surrogate (arXiv 2505.24871)."""
    return sources if form == "linear" else sources * (sources + 1) // 2


def fit_mixture(
    weights_ND: Array, scores_N: Array, *, form: Form, strength: float = 1e-6
) -> MixtureScore:
    """The surrogate of runs, by ridge regression (MoDoMoDo, arXiv 2505.24871).

    Each row of weights is a run's: at least 0, with the sum 1. `strength` weighs the squared
    coefficients of what is added to the mean.
    """
    sources, mean = weights_ND.shape[1], float(scores_N.mean())
    pairs = [(i, i) for i in range(sources)]
    if form == "quadratic":
        pairs += list(combinations(range(sources), 2))
        columns = [weights_ND[:, i] * weights_ND[:, j] for i, j in pairs]
    else:
        columns = [weights_ND[:, i] for i, _ in pairs]
    features_NK = np.stack(columns, axis=1)
    gram_KK = features_NK.T @ features_NK + strength * np.eye(len(pairs))
    found_K = np.linalg.solve(gram_KK, features_NK.T @ (scores_N - mean))
    q_DD = np.zeros((sources, sources))
    for (i, j), value in zip(pairs, found_K, strict=True):
        if form == "linear":  # b w = sum over i and j of w_i w_j (b_i + b_j) / 2
            q_DD[i, :] += value / 2
            q_DD[:, i] += value / 2
        else:
            q_DD[i, j] += value / 2
            q_DD[j, i] += value / 2
    return MixtureScore(form, mean, q_DD)


def best_mixture(surrogate: MixtureScore) -> Array:
    """The weights with the largest score, (D,): exactly, face by face (arXiv 2505.24871).

    On a face of the simplex a maximum within is where the gradient is the same for all its sources;
    the best of all such points, the corners among them, is the best.
    """
    points_ND = np.stack(list(_stationary(surrogate.q_DD)))
    best_D: Array = points_ND[int(np.argmax(surrogate.of(points_ND)))]
    return best_D


def _stationary(q_DD: Array) -> Iterator[Array]:
    sources = len(q_DD)
    for size in range(1, sources + 1):
        for chosen in combinations(range(sources), size):
            face = np.ix_(chosen, chosen)
            ones = np.ones((size, 1))
            system = np.block([[2 * q_DD[face], -ones], [ones.T, np.zeros((1, 1))]])
            if np.linalg.matrix_rank(system) <= size:  # a ridge: its ends are on other faces
                continue
            within = np.linalg.solve(system, np.append(np.zeros(size), 1.0))[:size]
            if (within >= 0).all():
                weights_D = np.zeros(sources)
                weights_D[list(chosen)] = within
                yield weights_D
