"""How the files of tests are dealt out to the workers of `make test`."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

CANARIES = "the canaries"
TOGETHER = {
    "tests/faults/test_sandbox_abuse.py": CANARIES,
    "tests/faults/test_session_abuse.py": CANARIES,
    "tests/faults/test_session_attacks.py": CANARIES,
}
"""Files that would wait for one another, and for what."""


class Files(LoadFileScheduling):
    """xdist's `--dist loadfile`; files of `TOGETHER` that wait for one thing go to one worker, and
    a worker that crashes costs the test that it ran.

    xdist's own deals the worker's files out again with the test that crashed it, and those that had
    ended: a new worker that is dealt nothing to do, or a single test, waits for ever.
    """

    def remove_node(self, node: WorkerController) -> str | None:
        """The test that `node` ran when it crashed; what it had left goes to the others."""
        left = {
            file: dict.fromkeys((test for test, done in unit.items() if not done), False)
            for file, unit in self.assigned_work[node].items()
        }
        self.assigned_work[node] = {}
        super().remove_node(node)
        crashed = next((test for unit in left.values() for test in unit), None)
        for file, unit in left.items():
            unit.pop(crashed, None)
            if unit:
                self.workqueue[file] = unit
        for other in self.nodes:
            self._reschedule(other)
        return crashed

    def schedule(self) -> None:
        """Twice where a worker joins: it starts a test when it knows of a second, or of no more."""
        joins = self.collection is not None
        super().schedule()
        if joins:
            super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)
