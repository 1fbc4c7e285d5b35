"""Labels of a program's lines, by search for the longest prefix that can still be completed.

Source: process supervision for code (arXiv 2410.17621). A prefix is feasible where one of K
completions of it passes all tests: lines up to the longest feasible prefix are right, later ones
wrong, comments neutral. Sampling and testing are the caller's part.

The paper's search is described in words only; this one bisects, and takes the empty prefix as
feasible.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence


def prefix_search(line_count: int) -> Generator[int, bool, int]:
    """The search itself: yields lengths, is sent whether so many lines can be completed.

    Returns the length of the longest feasible prefix.
    """
    least, most = 0, line_count
    while least < most:
        middle = (least + most + 1) // 2
        if (yield middle):
            least = middle
        else:
            most = middle - 1
    return least


def search_prefix(line_count: int, feasible: Callable[[int], bool]) -> tuple[int, int]:
    """The longest feasible prefix in lines, and how often `feasible` was asked.

    At most ceil(log2(line_count + 1)) times. `feasible(m)` says whether the first m lines, from 1
    to `line_count`, can be completed; it is taken to be monotone.
    """
    search, calls = prefix_search(line_count), 0
    try:
        asked = next(search)
        while True:
            calls += 1
            asked = search.send(feasible(asked))
    except StopIteration as end:
        return end.value, calls


def label_lines(neutral: Sequence[bool], feasible_lines: int) -> tuple[int, ...]:
    """A label for each line: 1 up to the longest feasible prefix, -1 behind it, 0 where neutral.

    Raises:
        ValueError: there are not so many lines.
    """
    if not 0 <= feasible_lines <= len(neutral):
        raise ValueError(f"{feasible_lines} of {len(neutral)} lines cannot be feasible")
    return tuple(
        0 if idle else (1 if index < feasible_lines else -1) for index, idle in enumerate(neutral)
    )
