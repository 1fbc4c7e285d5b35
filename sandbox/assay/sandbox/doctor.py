"""What `assay doctor` reports of this machine as a sandbox: its walls, and its languages."""

from __future__ import annotations

from assay.sandbox.backends import installed_backends
from assay.sandbox.jail import detect
from assay.sandbox.languages import discover
from assay.sandbox.sessions.probe import probe

Finding = tuple[str, str, bool | None]
"""What was examined, the result, and whether it is as it should be (None: a mere fact)."""


def look() -> list[Finding]:
    """Tries the walls and looks for toolchains. The entry point of the group assay.doctor."""
    found = detect()
    level = found.level or "none works"
    fine = found.level == "namespaces"
    findings: list[Finding] = [
        ("sandbox isolation", level, fine),
        ("sandbox layers", ", ".join(found.layers) or "none", None),
        ("sandbox back ends", ", ".join(installed_backends()), None),
    ]
    findings += [(f"sandbox without {name}", reason, None) for name, reason in found.missing]
    sessions = probe(level)
    lacks = dict(found.missing)
    why = sessions.why
    if sessions.name == "none" and "private-proc" in lacks:
        why = f"a session's keeper needs a /proc of its own: {lacks['private-proc']}"
    text = f"{sessions.name} ({why})" if why else sessions.name
    findings.append(("sandbox sessions", text, True if sessions.name == "full" else None))
    toolchains = discover()
    served = ", ".join(sorted(toolchains.found)) or "none"
    findings.append(("sandbox languages", served, bool(toolchains.found)))
    findings += [
        (f"sandbox language {lack.language}", lack.why, None)
        for lack in toolchains.missing.values()
    ]
    return findings
