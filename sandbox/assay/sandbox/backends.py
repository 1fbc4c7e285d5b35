"""Finds a back end by its name: the jail, and those that plug in under `assay.sandbox_backends`."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from assay.kit.errors import ConfigError, StartupError
from assay.sandbox.backend import IsolationBackend

GROUP = "assay.sandbox_backends"
_JAIL = EntryPoint("jail", "assay.sandbox.jail.backend:JAIL", GROUP)
_WHAT_BRINGS = dict.fromkeys(
    ("docker", "runsc"),
    "it comes with assay-rl-docker-backend; in a checkout of Assay, run: "
    "pip install ./plugins/docker_backend",
)


def installed_backends() -> dict[str, EntryPoint]:
    """The back ends of this environment by name, the jail first; imports nothing.

    No plug-in replaces the jail.
    """
    others = sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return {_JAIL.name: _JAIL} | {one.name: one for one in others if one.name != _JAIL.name}


def find_backend(name: str) -> IsolationBackend:
    """The back end of this name.

    Raises:
        ConfigError: it is not installed; the text says which are, and what to install.
        StartupError: its package cannot be imported.
    """
    if name == _JAIL.name:  # supervisors ask for it by the hundred: no look at the environment
        entry = _JAIL
    else:
        installed = installed_backends()
        if name not in installed:
            known = f"--backend {name!r} is not installed; there are {', '.join(installed)}"
            raise ConfigError("; ".join(filter(None, (known, _WHAT_BRINGS.get(name)))))
        entry = installed[name]
    try:
        backend: IsolationBackend = entry.load()
    except (ImportError, AttributeError) as error:
        raise StartupError(
            f"the back end {name!r} ({entry.value}) cannot be loaded: {error}"
        ) from error
    return backend
