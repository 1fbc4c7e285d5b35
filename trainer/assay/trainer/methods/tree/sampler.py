"""Responses of a prompt that share their beginnings: SPO-tree (arXiv 2505.23564).

Sample i of a prompt is leaf i of its tree. A segment is drawn for the first leaf below it, with
that sample's random numbers, so the first leaf is what it would be without a tree, and with one
branch at each level but the first every leaf is.

1. A segment that ends its response has no children; all leaves below it are that response.
2. Segments are asked for as soon as what they follow is there, not level by level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from assay.trainer.engines.arrivals import Arrivals
from assay.trainer.engines.engine import Follow, Id, Sampler
from assay.trainer.engines.types import Request, Response
from assay.trainer.methods.tree.settings import TreeConfig


class TreeSampler(Sampler):
    """Answers the samples of a prompt, all asked for together, by the leaves of a tree."""

    def __init__(self, inner: Sampler, config: TreeConfig) -> None:
        super().__init__(inner.engine, inner.sampling)
        self._inner = inner
        self._below = leaves_below(config.branches)
        self._tokens = config.segment_tokens

    def serve(
        self,
        first: Iterable[tuple[Id, Request]],
        follow: Follow,
        arrivals: Arrivals | None = None,
    ) -> None:
        """See Sampler; nothing follows from a leaf.

        Raises:
            ValueError: a tree's samples are not all there.
        """
        asked = list(first)
        ids = {(one.draw.number, one.index): id_ for id_, one in asked}
        trees = {number for number, _ in ids}
        if len(ids) != len(trees) * self._below[0]:
            raise ValueError(f"{len(ids)} samples of {len(trees)} prompts are no whole trees")
        requests = dict(asked)

        def heard(id_: Id, response: Response) -> Iterator[tuple[Id, Request]]:
            *at, depth = id_
            request = requests[tuple(at)]
            if not response.finished:
                yield from self._children(request, response, int(depth) + 1, ids)
                return
            for leaf in range(request.index, request.index + self._below[int(depth) + 1]):
                follow(ids[request.draw.number, leaf], response)

        roots = (
            segment
            for _, one in asked
            if not one.index
            for segment in self._children(one, None, 0, ids)
        )
        self._inner.serve(roots, heard, arrivals)

    def _children(
        self,
        parent: Request,
        begun: Response | None,
        depth: int,
        ids: dict[tuple[int, int], Id],
    ) -> Iterator[tuple[Id, Request]]:
        last = depth == len(self._below) - 2
        above, below = self._below[depth : depth + 2]
        for leaf in range(parent.index, parent.index + above, below):
            request = replace(parent, index=leaf, begun=begun, window=0 if last else self._tokens)
            yield (*ids[parent.draw.number, leaf], depth), request


def leaves_below(branches: Sequence[int]) -> list[int]:
    """How many leaves are below the root, a segment of the first level, ..., a leaf."""
    return [math.prod(branches[depth:]) for depth in range(len(branches) + 1)]


def budget(lengths: Sequence[int], config: TreeConfig) -> tuple[int, int, int]:
    """What a tree took, from the lengths of its leaves: segments, tokens, repeated leaves. Pure."""
    calls = tokens = repeated = 0
    below, last = leaves_below(config.branches), len(config.branches) - 1
    for depth, size in enumerate(below[1:]):
        start = depth * config.segment_tokens
        for length in lengths[::size]:
            if length <= start:
                continue
            end = length if depth == last else min(length, start + config.segment_tokens)
            calls, tokens = calls + 1, tokens + end - start
            if end == length and depth < last:
                repeated += size - 1
    return calls, tokens, repeated
