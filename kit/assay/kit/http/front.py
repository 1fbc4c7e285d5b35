"""What a face may use of any service: its settings, the deadline of a call, the caller's quota.

A service adds its own: `score` for the reward server, `runner` for the sandbox. The caller is known
(`assay.kit.calls`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import SimpleNamespace

from starlette.requests import Request

from assay.kit.calls import add_log_fields, tenant_var
from assay.kit.errors import refuse
from assay.kit.http.config import MAX_TIMEOUT_S, HttpConfig
from assay.kit.http.problems import forbidden
from assay.kit.quotas import Meter
from assay.kit.reasons import Reason
from assay.kit.serving import Admission

TIMEOUT_HEADER = "x-timeout-s"
OFFERED = "authorization"
"""The key, in a call's state, of the token that it offered."""


class Front:
    """A service as its faces see it.

    Attributes:
        closers: called when the listener has closed, in a thread.
    """

    def __init__(self, admission: Admission, config: HttpConfig, *, public: bool = False) -> None:
        self.admission = admission
        self.config = config
        self.public = public
        self.closers: list[Callable[[], None]] = []

    def timeout_s(self, request: Request) -> float:
        """Seconds until the call's deadline: the header `x-timeout-s`, else --http-timeout-s.

        Raises:
            BadRequestError: INVALID_TIMEOUT.
        """
        offered = request.headers.get(TIMEOUT_HEADER)
        if offered is None:
            return self.config.timeout_s
        try:
            seconds = float(offered)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= MAX_TIMEOUT_S:
            raise refuse(
                Reason.INVALID_TIMEOUT,
                f"{TIMEOUT_HEADER} must be seconds above 0 and at most {MAX_TIMEOUT_S:g}",
            )
        return seconds

    def need_operator(self, request: Request) -> None:
        """Checks that the caller may read what others sent.

        That is the holder of the one token of --token-file, or a user of this machine where no
        token is needed; never a tenant whom a file or a certificate gives the operator's name.

        Raises:
            UnauthenticatedError: it is a tenant among others, or anybody.
        """
        door = self.admission.door
        is_open = not (self.public or door.asks or tenant_var.get())
        if not is_open and not door.is_operator(request.scope["state"][OFFERED]):
            raise forbidden("only the token of --token-file opens this: it shows what all wrote")

    @contextmanager
    def charged(self, items: int) -> Iterator[Meter]:
        """Holds so many items of the caller's quota while the block runs.

        Raises:
            OverloadedError: QUOTA_EXCEEDED.
        """
        add_log_fields(items=items)
        with closing(Meter(self.admission.quotas, tenant_var.get())) as meter:
            meter.admit(SimpleNamespace(items=range(items)))
            yield meter
