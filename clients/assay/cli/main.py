"""The `assay` command; its subcommands are the entry points of the group `assay.commands`.

Exit codes: 0 done; 1 an error that Assay raises on purpose or that the system reports, as one line
on stderr; 2 wrong usage; 130 interrupted. Only a defect shows a traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint, entry_points, version

import click

from assay.clients.services import how_to_install
from assay.kit.errors import AssayError, ConfigError
from assay.kit.hints import did_you_mean

GROUP = "assay.commands"
_SUMMARIES = {
    "audit": "Find what a reward function accepts and must not.",
    "best-actions": "Better actions than those of a run's episodes, by values (Digi-Q).",
    "validate": "Check that a data set's rows can be trained on.",
    "check-verifier": "Check that a verifier keeps what every verifier promises.",
    "contamination": "Find out whether a model was trained on rows.",
    "compare": "Compare two runs on the same items: paired, with intervals.",
    "eval": "Evaluate a model on suites of problems.",
    "eval-judge": "How good a judge is, on rows whose answer is known.",
    "doctor": "What this machine has, and which services answer.",
    "environments": "What a policy can act in: list, show, check and play environments.",
    "journal": "Read the verdict journal of a reward server.",
    "lab": "What trainers learn when their reward server fails.",
    "run": "Run a program in the sandbox.",
    "score": "Score the responses of a file.",
    "session": "Run cells in a session of the sandbox: state, checkpoints, forks.",
    "serve": "Run one service in the foreground.",
    "code-prm": "Process supervision for code: labels, process reward model, dense run.",
    "label-code": "Label the lines of programs by what a policy can still make of them.",
    "label-critiques": "Write critiques that agree with one another, to train a judge on.",
    "mixture": "Weights of a data mixture, from pilot runs (MoDoMoDo).",
    "pivots": "The turns of trajectories at which a policy still differs (PivotRL).",
    "ladder": "Train a config with parts switched on or off, and compare.",
    "stages": "Train in stages: supervised or offline ones, then RL.",
    "token": "Make the bearer tokens that services ask for.",
    "starts": "Beginnings of good responses, to train from (ReST-RL).",
    "train": "Train a language model with rewards from services.",
    "train-rm": "Train a judge: of pairs, single responses or steps.",
    "up": "Start every installed service and keep them running.",
    "verifiers": "What a reward server judges.",
    "view": "Show training runs and verdicts in a browser.",
}


_BROUGHT_BY = {
    "best-actions": "assay-rl-trainer",
    "code-prm": "assay-rl-trainer",
    "compare": "assay-rl-trainer",
    "contamination": "assay-rl-trainer",
    "eval": "assay-rl-trainer",
    "journal": "assay-rl-reward-server",
    "label-code": "assay-rl-genrm",
    "label-critiques": "assay-rl-genrm",
    "ladder": "assay-rl-trainer",
    "mixture": "assay-rl-trainer",
    "pivots": "assay-rl-trainer",
    "stages": "assay-rl-trainer",
    "starts": "assay-rl-trainer",
    "train": "assay-rl-trainer",
    "train-rm": "assay-rl-trainer",
}


class _Commands(click.Group):
    """Subcommands by entry point. Listing them loads none: one imports torch."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(entry.name for entry in entry_points(group=GROUP))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = [entry for entry in entry_points(group=GROUP) if entry.name == cmd_name]
        if found:
            return _load(found[0])
        if cmd_name in _BROUGHT_BY:
            package = _BROUGHT_BY[cmd_name]
            raise ConfigError(f"`assay {cmd_name}` comes with {package}; {how_to_install(package)}")
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As in click, with a similar command's name in the error."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"{error.message.rstrip('.')}{near}", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, _SUMMARIES.get(name, "")) for name in self.list_commands(ctx)]
            )


def _load(entry: EntryPoint) -> click.Command:
    """Loads a command.

    Raises:
        ConfigError: Its package cannot be imported.
    """
    try:
        command: click.Command = entry.load()
    except ImportError as error:
        owner = entry.dist.name if entry.dist else entry.module
        raise ConfigError(
            f"`assay {entry.name}` cannot start: {error}; {how_to_install(owner)}"
        ) from error
    return command


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(version("assay-rl-clients"), prog_name="assay")
def cli() -> None:
    """Rewards and verifiers for reinforcement learning of language models."""


def report_error(error: Exception) -> int:
    """Prints one line on stderr and returns the exit code."""
    match error:
        case click.exceptions.NoArgsIsHelpError():
            error.show()
            return 2
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else "assay"
            return _fail(f"{error.format_message()} (see `{path} --help`)", 2)
        case click.ClickException():
            return _fail(error.format_message(), 1)
        case BrokenPipeError():
            # Whoever reads our output has enough. Python would complain again at its last flush.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 1
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return _fail(f"{where}{error.strerror or error}", 1)
    return _fail(str(error), 1)


def run(
    arguments: Sequence[str] | None = None, report: Callable[[Exception], int] = report_error
) -> int:
    """Runs the command line (default: that of this process) and returns its exit code.

    `report` prints an error and returns the exit code for it.
    """
    given = None if arguments is None else list(arguments)
    try:
        code = cli.main(given, prog_name="assay", standalone_mode=False)
    except click.Abort:
        return 130
    except (AssayError, click.ClickException, OSError) as error:
        return report(error)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int) -> int:
    print(f"assay: error: {' '.join(message.split())}", file=sys.stderr)
    return code
