"""`python -m assay.genrm`: flags and environment in, a running server out."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from assay.genrm.config import (
    DEFAULT_PORT,
    ENVIRONMENT_PREFIX,
    JudgeServerConfig,
    RunnerConfig,
    gather_models,
)
from assay.genrm.server import run
from assay.kit import tracing
from assay.kit.access import take_access
from assay.kit.errors import AssayError
from assay.kit.flags import access_flags
from assay.kit.logs import setup_logging
from assay.kit.process import read_token
from assay.kit.settings import fail, print_asked, settings_flags

_RUNNER_FLAGS = (
    "templates",
    "queue_items",
    "queue_mb",
    "self_test",
    "least_mass",
    "cache_entries",
    "metric_labels",
)
_PATH = click.Path(path_type=Path, dir_okay=False)
_FOLDER = click.Path(path_type=Path, file_okay=False)
_TITLE = "genrm"
_SECRETS = ("TOKEN", "REWARD_TOKEN")
_LEVELS = click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False)


@click.command(context_settings={"auto_envvar_prefix": ENVIRONMENT_PREFIX, "show_default": True})
@settings_flags(click.option, _PATH, click.BadParameter, _TITLE, _SECRETS)
@click.option("--models", type=_PATH, help="TOML file of models; configs/models.toml is one.")
@click.option(
    "--model",
    "shortcuts",
    multiple=True,
    metavar="NAME=PATH",
    envvar=f"{ENVIRONMENT_PREFIX}_MODEL",
    help="Serve this folder or hub name with the embedded engine; repeatable.",
)
@click.option("--templates", type=_FOLDER, multiple=True, help="Folder of prompts; repeatable.")
@click.option("--queue-items", type=int, default=8192, help="Items that may wait for a model.")
@click.option("--queue-mb", type=int, default=512, help="MiB that they may hold.")
@click.option(
    "--self-test/--no-self-test",
    default=True,
    help="Have each model tell known answers apart before it judges by a template.",
)
@click.option(
    "--least-mass",
    type=click.FloatRange(0, 1),
    help="Least share of the probability that verdicts must hold; by default each template's.",
)
@click.option(
    "--cache-entries",
    type=int,
    default=65_536,
    help="Answers that each model keeps for equal requests; 0: none.",
)
@click.option(
    "--metric-labels",
    default="",
    help="'run': metrics count cost by the first 100 runs.",
)
@click.option("--host", default="127.0.0.1", help="Address to bind.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, help="0: any free port."
)
@click.option("--port-file", type=_PATH, help="Write the port here when ready.")
@access_flags(click.option, _PATH)
@click.option("--reward-target", default="", help="HOST:PORT of who says if an attempt is right.")
@click.option("--reward-tls-ca", type=_PATH, help="Encrypt to the reward server; its authority.")
@click.option("--reward-token-file", type=_PATH, help="File with the reward server's bearer token.")
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
    reward_token_file: Path | None,
    models: Path | None,
    shortcuts: tuple[str, ...],
    **flags: Any,
) -> None:
    """Serve model-based rewards over gRPC: judges, process rewards, self-verification.

    Each flag can be set in the environment as ASSAY_GENRM_<FLAG>, and in a file, as --config says;
    a variable ASSAY_GENRM_... that is no setting is an error. The bearer token that clients
    must send comes from a file or from ASSAY_GENRM_TOKEN (that of the reward server from
    ASSAY_GENRM_REWARD_TOKEN), never from a flag, which every user of the machine could read. Prints
    "assay genrm ready on HOST:PORT" when every model has answered. SIGTERM or Ctrl-C lets running
    calls end, then stops.
    """
    try:
        if print_asked(context, _TITLE):
            return
        setup_logging(log_level, json=log_json)
        tracing.set_up(_TITLE)
        runner = {name: flags.pop(name) for name in _RUNNER_FLAGS}
        labels = [name.strip() for name in runner["metric_labels"].split(",")]
        runner["metric_labels"] = tuple(dict.fromkeys(filter(None, labels)))
        access = take_access(flags)
        config = JudgeServerConfig(
            RunnerConfig(gather_models(models, shortcuts), **runner),
            token=read_token(token_file, f"{ENVIRONMENT_PREFIX}_TOKEN"),
            access=access,
            reward_token=read_token(reward_token_file, f"{ENVIRONMENT_PREFIX}_REWARD_TOKEN"),
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
