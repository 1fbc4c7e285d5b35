"""The sandbox over HTTP. Its formats are plug-ins (distribution `assay-rl-compat`)."""

from __future__ import annotations

from assay.kit.http.app import Site
from assay.kit.http.config import HttpConfig
from assay.kit.http.front import Front
from assay.kit.serving import Admission
from assay.sandbox.runner import ProgramRunner
from assay.sandbox.sessions.service import Sessions

SITE = Site(
    service="sandbox",
    title="sandbox",
    summary="Runs untrusted programs, over HTTP.",
    description=(
        "The runner of the gRPC service, in the formats of its peers. What a program did is a "
        "judgement; what we could not run is a fault, in the words that the format has for it."
    ),
)


class SandboxFront(Front):
    """The sandbox as its HTTP faces see it; arguments as for `Front`.

    Attributes:
        sessions: None where a face is looked at without a server.
    """

    def __init__(
        self,
        runner: ProgramRunner,
        admission: Admission,
        config: HttpConfig,
        *,
        public: bool = False,
        sessions: Sessions | None = None,
    ) -> None:
        super().__init__(admission, config, public=public)
        self.runner = runner
        self.sessions = sessions
