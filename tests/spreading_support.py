"""Makes every batch of the reward server go to its workers, as large ones do."""

from __future__ import annotations

import pytest

from assay.kit.batch import dispatcher, spreading
from assay.kit.batch.spreading import Spreading
from assay.reward_server import config
from assay.reward_server.scorer import RewardScorer


def spread_everything(patch: pytest.MonkeyPatch, *, parcel_items: int = 8) -> None:
    """Parcels go out whatever they cost, as on a machine with four cores."""
    patch.setattr(Spreading, "pays", lambda _self, _item_s, left: left > 0)
    patch.setattr(dispatcher, "_SLICE_S", -1.0)
    patch.setattr(spreading, "_MOST_ITEMS", parcel_items)
    patch.setattr(config, "usable_cores", lambda: 4)


def sent(scorer: RewardScorer) -> int:
    """Items that went to workers in parcels."""
    spread = scorer.dispatcher.spreading
    assert spread is not None
    return spread.sent
