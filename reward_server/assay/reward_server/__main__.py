"""`python -m assay.reward_server`: flags and environment in, a running server out."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from assay.kit import tracing
from assay.kit.access import take_access
from assay.kit.errors import AssayError
from assay.kit.flags import access_flags, http_flags, pool_flags, take_http
from assay.kit.logs import setup_logging
from assay.kit.process import read_token
from assay.kit.settings import fail, print_asked, settings_flags
from assay.reward_server.config import (
    DEFAULT_PORT,
    ENVIRONMENT_PREFIX,
    ScorerConfig,
    ServerConfig,
)
from assay.reward_server.server import run

_SCORER = ScorerConfig()
_SCORER_FLAGS = [field.name for field in fields(ScorerConfig)]
_PATH = click.Path(path_type=Path, dir_okay=False)
_TITLE = "reward_server"
_SECRETS = ("TOKEN", "SANDBOX_TOKEN", "GENRM_TOKEN", "APPEAL_KEY")
_LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False)


@click.command(context_settings={"auto_envvar_prefix": ENVIRONMENT_PREFIX, "show_default": True})
@settings_flags(click.option, _PATH, click.BadParameter, _TITLE, _SECRETS)
@click.option("--host", default="127.0.0.1", help="Address to bind.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="0: any free port."
)
@click.option("--port-file", type=_PATH, help="Write the port here when ready.")
@click.option("--workers", type=int, default=_SCORER.workers, help="Processes; 0: one per core.")
@pool_flags(click.option, "Where workers run: local, or a place that a plug-in brings.")
@click.option("--queue-items", type=int, default=_SCORER.queue_items, help="Items that may wait.")
@click.option("--queue-mb", type=int, default=_SCORER.queue_mb, help="MiB that they may hold.")
@click.option(
    "--item-timeout-s",
    type=float,
    default=_SCORER.item_timeout_s,
    help="Where an item states none.",
)
@click.option(
    "--max-item-timeout-s",
    type=float,
    default=_SCORER.max_item_timeout_s,
    help="The longest an item may ask for.",
)
@click.option(
    "--worker-memory-mb",
    type=int,
    default=_SCORER.worker_memory_mb,
    help="Address space of a worker in MiB; 0: no limit.",
)
@click.option(
    "--worker-items", type=int, default=_SCORER.worker_items, help="Then a worker is replaced."
)
@click.option(
    "--worker-growth-mb",
    type=int,
    default=_SCORER.worker_growth_mb,
    help="Replace a worker that grew by so many MiB.",
)
@click.option(
    "--cache-entries", type=int, default=_SCORER.cache_entries, help="Judgements remembered."
)
@click.option(
    "--preload",
    multiple=True,
    metavar="NAME",
    help="Load a verifier that is slow to load when the server starts; all: every one.",
)
@click.option(
    "--metric-labels",
    default="",
    metavar="NAME,...",
    help="Callers' labels that metrics count items by; their first 100 values each, then other.",
)
@click.option(
    "--verifier",
    multiple=True,
    metavar="[NAME=]FILE.py:FUNCTION",
    help="A function in a file that judges, under its name or NAME; repeatable.",
)
@click.option("--reload", is_flag=True, help="Start anew when a file of --verifier changes.")
@click.option("--profiles", type=_PATH, multiple=True, help="TOML file of profiles; repeatable.")
@click.option(
    "--appeal-key-file", type=_PATH, help="File with the secret that appeals are drawn by."
)
@click.option(
    "--reliability",
    type=_PATH,
    multiple=True,
    help="JSON file of measured rates of verifiers; repeatable.",
)
@click.option(
    "--journal", type=_PATH, help="SQLite file that every judgement and fault is kept in."
)
@click.option("--journal-max-mb", type=int, default=1024, help="MiB; then its oldest entries go.")
@http_flags(click.option, click.IntRange(0, 65535))
@click.option("--http-verifier", default="", help="Judges where an HTTP call names none.")
@click.option(
    "--http-mask-faults",
    is_flag=True,
    help="NeMo Gym's /verify masks a fault's row: to collect, never to train with NeMo RL.",
)
@access_flags(click.option, _PATH)
@click.option("--sandbox-target", default="", help="HOST:PORT of the sandbox, to serve `code`.")
@click.option("--sandbox-tls-ca", type=_PATH, help="Encrypt to the sandbox; its authority, PEM.")
@click.option("--sandbox-token-file", type=_PATH, help="File with the sandbox's bearer token.")
@click.option("--genrm-target", default="", help="HOST:PORT of genrm, to serve `judge`, `prm`, ...")
@click.option("--genrm-tls-ca", type=_PATH, help="Encrypt to genrm; its authority, PEM.")
@click.option("--genrm-token-file", type=_PATH, help="File with genrm's bearer token.")
@click.option("--client-cert", type=_PATH, help="Our certificate, for services that ask for one.")
@click.option("--client-key", type=_PATH, help="Its private key, PEM.")
@click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Show metrics over HTTP; 0: any free port.",
)
@click.option("--metrics-host", default="127.0.0.1", help="Address to bind for metrics.")
@click.option("--drain-s", type=click.FloatRange(min=0), default=10.0, help="Time to end calls.")
@click.option("--log-level", type=_LEVELS, default="INFO", help="Least level that is logged.")
@click.option("--log-json/--log-text", default=False, help="Form of the logs, which go to stderr.")
@click.pass_context
def cli(
    context: click.Context,
    /,
    *,
    log_level: str,
    log_json: bool,
    token_file: Path | None,
    sandbox_token_file: Path | None,
    genrm_token_file: Path | None,
    appeal_key_file: Path | None,
    **flags: Any,
) -> None:
    """Serve rewards over gRPC, and over HTTP/JSON with --http-port.

    Each flag can be set in the environment as ASSAY_REWARD_<FLAG>, and in a file, as --config says;
    a variable ASSAY_REWARD_... that is no setting is an error. The bearer token that clients must
    send comes from a file or from ASSAY_REWARD_TOKEN (those of the sandbox and of genrm from
    ASSAY_REWARD_SANDBOX_TOKEN and ASSAY_REWARD_GENRM_TOKEN), never from a flag, which every user of
    the machine could read; so does the key of appeals (ASSAY_REWARD_APPEAL_KEY). Prints "assay
    reward_server ready on HOST:PORT" when it serves, and "assay reward_server http on HOST:PORT"
    for HTTP. SIGTERM or Ctrl-C lets running calls end, then stops.
    """
    try:
        if print_asked(context, _TITLE):
            return
        setup_logging(log_level, json=log_json)
        tracing.set_up(_TITLE)
        labels = [name.strip() for name in flags.pop("metric_labels").split(",")]
        flags["metric_labels"] = tuple(dict.fromkeys(filter(None, labels)))
        scorer = {name: flags.pop(name) for name in _SCORER_FLAGS}
        access = take_access(flags)
        config = ServerConfig(
            ScorerConfig(**scorer),
            token=read_token(token_file, f"{ENVIRONMENT_PREFIX}_TOKEN"),
            access=access,
            http=take_http(flags),
            sandbox_token=read_token(sandbox_token_file, f"{ENVIRONMENT_PREFIX}_SANDBOX_TOKEN"),
            genrm_token=read_token(genrm_token_file, f"{ENVIRONMENT_PREFIX}_GENRM_TOKEN"),
            appeal_key=read_token(appeal_key_file, f"{ENVIRONMENT_PREFIX}_APPEAL_KEY"),
            **flags,
        )
        asyncio.run(run(config))
    except AssayError as error:
        fail(_TITLE, error, context)


def main() -> None:
    """Runs the command; the entry point of the group assay.services."""
    cli()


if __name__ == "__main__":
    main()
