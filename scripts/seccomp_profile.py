"""Keeps sandbox/seccomp.json, the profile for a container that the sandbox itself runs in.

python scripts/seccomp_profile.py write    rewrites the profile
python scripts/seccomp_profile.py check    exits with 1 when it is not what the sandbox's tables say

Docker's default profile refuses what the jail's walls are made of: unshare, mount, clone with new
namespaces. This one allows those few and, besides, only what the jail's own filter may allow to
programs. The service holds no capability, so a mount or a pivot_root works inside a user namespace
of its own and nowhere else. setns is refused: nothing here enters a namespace that it has not made.
"""

from __future__ import annotations

import sys
from pathlib import Path

from assay.sandbox.backends.profiles import service_profile

PROFILE = Path(__file__).resolve().parent.parent / "sandbox" / "seccomp.json"


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    if arguments not in (["write"], ["check"]):
        print(__doc__, file=sys.stderr)
        return 2
    wanted = service_profile()
    if arguments == ["write"]:
        PROFILE.write_text(wanted, encoding="utf-8")
        return 0
    if not PROFILE.is_file() or PROFILE.read_text(encoding="utf-8") != wanted:
        print(f"sandbox/{PROFILE.name} is out of date: run `{sys.argv[0]} write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
