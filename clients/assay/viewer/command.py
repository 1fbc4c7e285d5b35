"""`assay view`: runs, journals and servers in a browser."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import webbrowser
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from assay.kit.process import read_token
from assay.viewer.app import Pages
from assay.viewer.mirror import Mirrors, is_remote
from assay.viewer.serve import PORT, ViewerServer

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command(
    epilog="Examples: `assay view runs`, `assay view runs/grpo-1 verdicts.sqlite`, "
    "`assay view https://HOST:8080/journal --token-file operator.token`."
)
@click.argument("places", nargs=-1, required=True, metavar="RUN|FOLDER|JOURNAL|URL...")
@click.option(
    "--port", type=click.IntRange(0, 65535), help=f"Default: {PORT}, or a free one; 0: any free."
)
@click.option("--bind", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--open", "opens", is_flag=True, help="Open a browser on it.")
@click.option(
    "--token-file",
    type=_FILE,
    help="The operator's token, or set ASSAY_VIEW_TOKEN: sent to servers that URLs name, and asked "
    "of browsers where --bind is not loopback.",
)
@click.option("--tls-ca", type=_FILE, help="Certificates that servers' are checked against.")
@click.option("--tls-cert", type=_FILE, help="Serve https with this certificate.")
@click.option("--tls-key", type=_FILE, help="Its key.")
def view(  # noqa: PLR0917 - click passes options by name
    places: tuple[str, ...],
    port: int | None,
    bind: str,
    opens: bool,
    token_file: Path | None,
    tls_ca: Path | None,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Show training runs and verdicts in a browser, until Ctrl-C.

    A run may still go on; a folder may hold many; a URL is the journal of a reward server, of which
    a copy is kept up to date here (dns+http://NAME:PORT/journal: of each server behind a name).
    """
    from assay.viewer.api import ViewerApi  # noqa: PLC0415 - its index, where it is shown

    token = read_token(token_file, "ASSAY_VIEW_TOKEN")
    urls = [place for place in places if is_remote(place)]
    paths = [Path(place) for place in places if not is_remote(place)]
    with contextlib.ExitStack() as stack:
        if urls:
            folder = stack.enter_context(_kept(urls))
            say = click.echo
            mirrors = Mirrors(urls, folder, token, authorities=tls_ca, say=say)
            stack.enter_context(mirrors)
            paths.append(folder)
        api = stack.enter_context(ViewerApi(paths))
        ends: list[ViewerServer] = []
        pages = Pages(api, lambda: any(server.stopping for server in ends))
        server = ViewerServer(pages, bind, port, token=token, certificate=tls_cert, key=tls_key)
        ends.append(server)
        click.echo(f"assay view: {server.address}")
        if opens:
            webbrowser.open(server.address)
        server.run()


@contextlib.contextmanager
def _kept(urls: Sequence[str]) -> Iterator[Path]:
    """The folder of these servers' mirrors: in the user's cache, else for this time alone."""
    name = hashlib.sha256("\n".join(sorted(urls)).encode()).hexdigest()[:12]
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "assay" / "mirrors" / name
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not os.access(folder, os.W_OK):
            raise PermissionError
    except OSError:
        with tempfile.TemporaryDirectory(prefix="assay-mirrors-") as temporary:
            yield Path(temporary)
        return
    yield folder
