"""How the files of tests are dealt out to the workers of `make test`."""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling

CANARIES = "the canaries"
TOGETHER = {
    "tests/faults/test_sandbox_abuse.py": CANARIES,
    "tests/faults/test_session_abuse.py": CANARIES,
    "tests/faults/test_session_attacks.py": CANARIES,
}
"""Files that would wait for one another, and for what."""


class Files(LoadFileScheduling):
    """xdist's `--dist loadfile`; files of `TOGETHER` that wait for one thing go to one worker."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return TOGETHER.get(file, file)
