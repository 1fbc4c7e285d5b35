"""Keeps sandbox/seccomp.json, the profile for a container that the sandbox itself runs in.

python scripts/seccomp_profile.py write    rewrites the profile
python scripts/seccomp_profile.py check    exits with 1 when it is not what the sandbox's tables say

Docker's default profile refuses what the jail's walls are made of: unshare, mount, clone with new
namespaces. This one allows those few and, besides, only what the jail's own filter may allow to
programs. The service holds no capability, so a mount or a pivot_root works inside a user namespace
of its own and nowhere else. setns is for mount namespaces alone: the keeper of a session enters
that of a copy to give it its files, which takes rights over the copy's user namespace.
"""

from __future__ import annotations

import sys

import written
from assay.docker_backend.profiles import service_profile

PROFILE = written.ROOT / "sandbox" / "seccomp.json"


def main(arguments: list[str]) -> int:
    """Dispatches one of the two verbs."""
    return written.run(
        __doc__, "the sandbox's tables", lambda: {PROFILE: service_profile()}, arguments
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
