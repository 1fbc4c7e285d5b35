"""The back ends `docker` and `runsc`, as the sandbox finds them."""

from __future__ import annotations

from dataclasses import dataclass

from assay.docker_backend.boxes import DockerBoxes
from assay.docker_backend.container import DEFAULT_IMAGE, DockerConfig, check, connect
from assay.sandbox.backend import Boxes, IsolationBackend, SandboxConfig, SlotSettings, Walls

_FIRST_USER = 61_000


@dataclass(frozen=True, slots=True)
class DockerBackend:
    """Containers of one runtime.

    Attributes:
        runtime: the daemon's name for it, e.g. "runsc"; empty for its default.
        on_this_machine: False: programs use the image's tools.
    """

    runtime: str = ""
    on_this_machine: bool = False

    def check(self, config: SandboxConfig) -> Walls:
        """The walls that the daemon gives its containers.

        Raises:
            StartupError: no daemon, no image, or no such runtime.
        """
        asked = DockerConfig(image=config.image or DEFAULT_IMAGE, runtime=self.runtime)
        api = connect(asked)
        try:
            return Walls(asked.level, check(api, asked))
        finally:
            api.close()

    def open(self, settings: SlotSettings) -> Boxes:
        """The slot's boxes, whose first container has run a program.

        Raises:
            StartupError: as `check`, or an image without a usable Python.
        """
        return DockerBoxes(
            DockerConfig(
                image=settings.image,
                runtime=self.runtime,
                uid=_FIRST_USER + settings.slot,
                read_only_paths=settings.read_only_paths,
            )
        )


DOCKER: IsolationBackend = DockerBackend()
RUNSC: IsolationBackend = DockerBackend("runsc")
