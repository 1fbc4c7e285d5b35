"""When a step is supervised (SASR): chances, and whose numbers a step tells."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from assay.trainer.algos.selection import supervision_chance

norms, positive = st.floats(0, 1e3), st.floats(1e-3, 1e3)


@given(norms, positive, positive, norms, norms)
def test_a_chance_is_one_and_is_even_odds_of_gamma_where_nothing_changed(
    norm: float, warm: float, gamma: float, kl: float, brake: float
) -> None:
    chance = supervision_chance(norm, warm, gamma=gamma, kl=kl, brake=brake)
    assert 0 <= chance <= 1
    assert (chance == 0) == (norm == 0)
    at_first = supervision_chance(warm, warm, gamma=gamma)
    assert abs(at_first - 1 / (1 + gamma)) < 1e-9


@given(positive, positive, positive, norms)
def test_supervision_is_likelier_where_it_still_moves_and_far_from_the_start(
    norm: float, more: float, warm: float, kl: float
) -> None:
    chance = supervision_chance(norm, warm, gamma=2.0, kl=kl, brake=1.0)
    assert supervision_chance(norm + more, warm, gamma=2.0, kl=kl, brake=1.0) >= chance
    assert supervision_chance(norm, warm, gamma=2.0, kl=kl + more, brake=1.0) >= chance
    assert supervision_chance(norm, warm + more, gamma=2.0, kl=kl, brake=1.0) <= chance
    assert supervision_chance(norm, warm, gamma=2.0, kl=kl) <= chance, "no brake"


def test_where_nothing_moves_nothing_is_supervised() -> None:
    assert supervision_chance(0.0, 0.0, gamma=1.0) == 0.0
