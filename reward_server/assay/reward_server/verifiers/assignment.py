"""The assignment problem: which prediction belongs to which reference, at the least total cost.

The Hungarian method in the form of shortest augmenting paths with potentials (H. W. Kuhn, "The
Hungarian method for the assignment problem", 1955; J. Munkres, 1957; R. Jonker and A. Volgenant,
"A shortest augmenting path algorithm", 1987): O(rows^2 * columns) steps for rows <= columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def assign(costs: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Pairs of (row, column) of the least total cost, as many as the shorter side has, sorted.

    Args:
        costs: a rectangle of finite numbers; empty for none.
    """
    if not costs or not costs[0]:
        return []
    if len(costs) > len(costs[0]):
        turned = [list(column) for column in zip(*costs, strict=True)]
        return sorted((row, column) for column, row in assign(turned))
    rows_of = _solve(costs)
    return sorted((row, column) for column, row in enumerate(rows_of) if row >= 0)


def _solve(costs: Sequence[Sequence[float]]) -> list[int]:
    """The row of each column, -1 for none; there are no more rows than columns."""
    n_columns = len(costs[0])
    row_potential = [0.0] * len(costs)
    column_potential = [0.0] * (n_columns + 1)
    row_of = [-1] * (n_columns + 1)  # the last column is where the row that seeks a place stands
    for new_row in range(len(costs)):
        row_of[n_columns] = new_row
        column = n_columns
        slack = [math.inf] * n_columns
        previous = [n_columns] * n_columns
        free = list(range(n_columns))
        reached = [n_columns]
        while row_of[column] >= 0:
            row = row_of[column]
            line, offset = costs[row], row_potential[row]
            nearest, least = -1, math.inf
            for candidate in free:
                distance = line[candidate] - offset - column_potential[candidate]
                if distance < slack[candidate]:
                    slack[candidate] = distance
                    previous[candidate] = column
                if slack[candidate] < least:
                    nearest, least = candidate, slack[candidate]
            for done in reached:
                row_potential[row_of[done]] += least
                column_potential[done] -= least
            for candidate in free:
                slack[candidate] -= least
            free.remove(nearest)
            reached.append(nearest)
            column = nearest
        while column != n_columns:
            row_of[column] = row_of[previous[column]]
            column = previous[column]
    return row_of[:n_columns]
