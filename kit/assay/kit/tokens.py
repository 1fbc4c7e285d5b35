"""Bearer tokens of tenants: stored as hashes, in a file that is read again when it changes.

One line for each token, `TENANT sha256:HEX`; a tenant may have several, and # begins a comment.
`assay token new TENANT` makes one. Docs: ADR 15.

Covered: the file holds no usable token; comparisons take constant time; a removed line is forgotten
within two seconds, or at once by SIGHUP. Not covered: tokens that people think up: the hash has no
salt and is fast, which suffices for 256 random bits alone.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from assay.kit.calls import bearer
from assay.kit.errors import ConfigError
from assay.kit.watching import LOOK_S, FileWatch

DEFAULT_TENANT = "default"
"""The tenant of the one token of `--token-file` or of the environment."""

_PREFIX = "assay_"
_SCHEME = b"Bearer "
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TokenHash:
    """One stored token.

    Attributes:
        digest: SHA-256 of its bytes, 32 bytes.
    """

    tenant: str
    digest: bytes

    @property
    def line(self) -> str:
        """The line of a tokens file, without its end."""
        return f"{self.tenant} sha256:{self.digest.hex()}"


def new_token() -> str:
    """A fresh token: 256 random bits after a prefix for scanners of leaked secrets."""
    return _PREFIX + secrets.token_urlsafe(32)


def hash_token(tenant: str, token: str) -> TokenHash:
    """The token as it is stored.

    Raises:
        ConfigError: no tenant can have this name, or metadata cannot carry the token, which the
            message does not hold.
    """
    if not _TENANT.fullmatch(tenant):
        raise ConfigError(
            "a tenant's name is 1 to 64 letters, digits, '.', '_' and '-', a letter or digit first"
        )
    bearer(token)
    return TokenHash(tenant, hashlib.sha256(token.encode()).digest())


def parse_tokens(text: str) -> tuple[list[TokenHash], list[int]]:
    """The tokens of a file, and the numbers (from 1) of wrong lines.

    The text of those lines stays out: it may hold a token.
    """
    found: list[TokenHash] = []
    bad: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        digest = _DIGEST.fullmatch(words[1]) if len(words) == 2 else None
        if digest is None or not _TENANT.fullmatch(words[0]):
            bad.append(number)
        else:
            found.append(TokenHash(words[0], bytes.fromhex(digest[1])))
    return found, bad


class TokensFile:
    """The current tokens of a file.

    A request for tokens looks at the file at most once a second, and reads it when it has changed
    and then been stable for a second (`FileWatch`). An unreadable file changes nothing; a wrong
    line affects itself alone. Each problem is one line in the log.

    Raises:
        ConfigError: it cannot be read, holds no token or a line that is not one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._looked_s = time.monotonic()
        self._watch = FileWatch([path])
        self._tokens, bad = self._read()
        if bad:
            raise ConfigError(f"{self._where(bad)}: write TENANT sha256:HEX, as assay token new")
        if not self._tokens:
            raise ConfigError(
                f"the tokens file {path} holds no token: `assay token new TENANT` makes one"
            )

    @property
    def tokens(self) -> list[TokenHash]:
        """The valid ones now."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            if self._watch.changed():
                self._take()
        return self._tokens

    def reload(self) -> None:
        """Reads the file now, whether it has changed or not."""
        self._watch.note()
        self._take()

    def _take(self) -> None:
        try:
            found, bad = self._read()
        except ConfigError as error:
            _log.error("%s; the tokens stay as they were", error)
            return
        if bad:
            _log.error("%s; the others count", self._where(bad))
        if not found:
            _log.error("the tokens file %s holds no token: nobody is let in", self._path)
        self._tokens = found
        _log.info("read %d tokens of %d tenants", len(found), len({one.tenant for one in found}))

    def _read(self) -> tuple[list[TokenHash], list[int]]:
        try:
            return parse_tokens(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            reason = error.strerror or type(error).__name__
        except UnicodeDecodeError:
            reason = "it is not UTF-8"
        raise ConfigError(f"the tokens file {self._path} cannot be read: {reason}")

    def _where(self, bad: list[int]) -> str:
        lines = ", ".join(map(str, bad[:5])) + (", ..." if bad[5:] else "")
        return f"the tokens file {self._path} has lines that are no token ({lines})"


class Doorman:
    """Authenticates callers by their token.

    Args:
        token: the one token of DEFAULT_TENANT; None for none.
        file: further tokens; None for none. With neither everybody is let in.

    Raises:
        ConfigError: no caller could send the token.
    """

    def __init__(self, token: str | None = None, file: TokensFile | None = None) -> None:
        self._fixed = [] if token is None else [hash_token(DEFAULT_TENANT, token)]
        self._file = file

    @property
    def asks(self) -> bool:
        """Whether a token is needed at all."""
        return bool(self._fixed) or self._file is not None

    def tenant_of(self, authorization: str | bytes | None) -> str | None:
        """The tenant of a caller's `authorization` metadata; None for nobody's token.

        Returns "" where no token is needed.
        """
        if not self.asks:
            return ""
        offered = _token_of(authorization)
        return None if offered is None else _owner(offered, (*self._fixed, *self._filed()))

    def is_operator(self, authorization: str | bytes | None) -> bool:
        """Whether this `authorization` holds the token of `--token-file`."""
        offered = _token_of(authorization)
        return offered is not None and _owner(offered, self._fixed) is not None

    def reload(self) -> None:
        """Reads the tokens file now, if there is one."""
        if self._file is not None:
            self._file.reload()

    def _filed(self) -> list[TokenHash]:
        return self._file.tokens if self._file else []


def _token_of(authorization: str | bytes | None) -> bytes | None:
    offered = authorization.encode() if isinstance(authorization, str) else authorization or b""
    return offered[len(_SCHEME) :] if offered.startswith(_SCHEME) else None


def _owner(token: bytes, known: Iterable[TokenHash]) -> str | None:
    """Compares with every known token, in constant time."""
    digest = hashlib.sha256(token).digest()
    owner: str | None = None
    for one in known:
        if hmac.compare_digest(one.digest, digest):
            owner = one.tenant
    return owner
