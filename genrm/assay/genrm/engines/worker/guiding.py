"""A row that is held to a form: which tokens may come, and how much the model wanted them."""

from __future__ import annotations

import torch

from assay.genrm.engines.worker.vocabulary import FormTable

_LINE_TOKENS = 96
"""A free line that is longer is brought to its end."""
_SPARE_TOKENS = 2


class FormGuide:
    """One row's way through a form.

    Attributes:
        mass: the least share of the model's probability, at temperature 1, that the verdicts had
            where one was said; 1 so far.
    """

    def __init__(self, table: FormTable, max_tokens: int) -> None:
        self.mass = 1.0
        self._table = table
        self._state = table.start
        self._left = max_tokens
        self._line = 0
        self._share = 1.0
        self._held = 1.0

    @property
    def done(self) -> bool:
        """The text is complete."""
        return self._state == self._table.final

    def narrow(self, logits_V: torch.Tensor) -> torch.Tensor:
        """The logits with -inf where the form does not allow the token."""
        nearly = self._left <= self._table.needs(self._state) + _SPARE_TOKENS
        ids = self._table.allowed(self._state, nearly or self._line >= _LINE_TOKENS)
        ids = ids[ids < len(logits_V)].to(logits_V.device)
        kept = logits_V[ids]
        narrowed = torch.full_like(logits_V, -torch.inf)
        narrowed[ids] = kept
        self._held = 0.0
        if len(ids):
            whole = torch.logsumexp(logits_V.double(), -1)
            self._held = float((torch.logsumexp(kept.double(), -1) - whole).exp())
        return narrowed

    def advance(self, token: int) -> None:
        """Takes up the token that was drawn from what `narrow` gave."""
        path = self._table.path(self._state, token)
        self._left -= 1
        if not self._table.verdicts.isdisjoint(path[:-1]):
            self._share *= self._held
            if path[-1] not in self._table.verdicts:
                self.mass, self._share = min(self.mass, self._share), 1.0
        self._line = self._line + 1 if path[-1] in self._table.free else 0
        self._state = path[-1]
