"""The replay's hook: a keeper of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.trainer.core.hooks import Hooks
from assay.trainer.methods.replay.replay import make_replay


class Replaying(Hooks):
    """Groups of earlier steps come again, or their successes."""

    def collecting(self) -> Mapping[str, Any]:
        """See Hooks."""
        return {"keepers": (make_replay(self.config.method.replay, self.config.run.seed),)}
