"""One law for the settings of all services: flag, environment, file, default."""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from assay.genrm.__main__ import cli as genrm_cli
from assay.kit.settings import in_force
from assay.kit.toml_files import in_toml
from assay.reward_server.__main__ import cli as reward_cli
from assay.sandbox.__main__ import cli as sandbox_cli

CLIS: dict[str, click.Command] = {"REWARD": reward_cli, "SANDBOX": sandbox_cli, "GENRM": genrm_cli}
WORDS = st.from_regex(r"[A-Za-z0-9_./=][A-Za-z0-9_./=-]{0,20}", fullmatch=True)
COMPOSE = re.compile(r"^ *- (ASSAY_(REWARD|SANDBOX|GENRM)_[A-Z_]+)", re.MULTILINE)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """A command that gets as far as its settings sets logging up."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def settings_of(command: click.Command) -> list[click.Option]:
    return [one for one in command.params if isinstance(one, click.Option) and one.expose_value]


def key_of(one: click.Option) -> str:
    return one.opts[0].removeprefix("--")


def values(one: click.Option) -> st.SearchStrategy[Any]:
    """What a setting may be in a file, and is when it was read."""
    kind = one.type
    if one.is_flag:
        return st.booleans()
    if isinstance(kind, click.types.IntParamType):
        return st.integers(0, 65535)
    if isinstance(kind, click.types.FloatParamType):
        return st.floats(0, 1e9) | st.integers(0, 10**9)
    if isinstance(kind, click.Choice):
        return st.sampled_from(list(kind.choices))
    return st.lists(WORDS, min_size=1, max_size=3) if one.multiple else WORDS


def as_flags(one: click.Option, value: Any) -> list[str] | None:
    """None where no flag says it: one without its opposite cannot be turned off."""
    if one.is_flag:
        off = one.secondary_opts[:1] or [""]
        name = one.opts[0] if value else off[0]
        return [name] if name else None
    texts = value if one.multiple else [value]
    return [f"{one.opts[0]}={text}" for text in texts]


def as_variable(service: str, one: click.Option, value: Any) -> dict[str, str]:
    name = one.envvar or f"ASSAY_{service}_{(one.name or '').upper()}"
    assert isinstance(name, str)
    between = os.pathsep if isinstance(one.type, click.Path) else " "
    return {name: between.join(value) if one.multiple else str(value)}


@contextmanager
def environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    for name in before:
        if name.startswith("ASSAY_"):
            del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def parsed(service: str, arguments: list[str], variables: Mapping[str, str], file: str = "") -> Any:
    with tempfile.TemporaryDirectory() as folder, environment(variables):
        path = Path(folder) / "service.toml"
        path.write_text(file, encoding="utf-8")
        given_file = ["--config", str(path)] if file else []
        context = CLIS[service].make_context("x", [*given_file, *arguments],
                                             auto_envvar_prefix=f"ASSAY_{service}")  # fmt: skip
        return context.params, in_force(context, "x")


@st.composite
def settings(draw: st.DrawFn) -> tuple[str, click.Option, list[Any]]:
    """A service, a setting of it, and three values that it may have."""
    service = draw(st.sampled_from(sorted(CLIS)))
    one = draw(st.sampled_from(settings_of(CLIS[service])))
    return service, one, [draw(values(one)) for _ in range(3)]


@given(settings())
def test_a_setting_is_the_same_by_a_flag_by_the_environment_and_by_a_file(case: Any) -> None:
    service, one, [value, *_] = case
    by_file, printed = parsed(service, [], {}, f"{key_of(one)} = {in_toml(value)}")
    by_variable, _ = parsed(service, [], as_variable(service, one, value))
    assert by_file == by_variable
    flags = as_flags(one, value)
    if flags is not None:
        assert parsed(service, flags, {})[0] == by_file
    # What is printed is a file that says the same.
    assert parsed(service, [], {}, printed)[0] == by_file


@given(settings(), st.sets(st.sampled_from(["file", "environment", "flag"])))
def test_a_flag_counts_before_the_environment_and_that_before_the_file(
    case: Any, said: set[str]
) -> None:
    service, one, [in_file, in_environment, in_flag] = case
    flags = as_flags(one, in_flag) if "flag" in said else None
    found, printed = parsed(
        service,
        flags or [],
        as_variable(service, one, in_environment) if "environment" in said else {},
        f"{key_of(one)} = {in_toml(in_file)}" if "file" in said else "",
    )
    if flags:
        wanted, source = parsed(service, flags, {})[0], "flag"
    elif "environment" in said:
        wanted = parsed(service, [], as_variable(service, one, in_environment))[0]
        source = "environment"
    elif "file" in said:
        wanted = parsed(service, [], {}, f"{key_of(one)} = {in_toml(in_file)}")[0]
        source = "file"
    else:
        wanted, source = parsed(service, [], {})[0], ""
    assert found == wanted
    [line] = re.findall(rf"(?m)^(?:# )?{key_of(one)} .*$", printed)
    assert re.search(r"  # (flag|environment|file)$", line) is not None or not source
    assert line.endswith(f"  # {source}") or not source


def test_an_empty_variable_says_nothing() -> None:
    found, _ = parsed("REWARD", [], {"ASSAY_REWARD_WORKERS": "", "ASSAY_REWARD_WORKRES": ""},
                      "workers = 3")  # fmt: skip
    assert found["workers"] == 3


def run(service: str, *arguments: str, **variables: str) -> Result:
    with environment({f"ASSAY_{service}_{name}": text for name, text in variables.items()}):
        return CliRunner().invoke(CLIS[service], list(arguments))


@pytest.mark.parametrize("service", CLIS)
def test_an_unknown_variable_ends_the_start_and_names_the_nearest(service: str) -> None:
    for name in ("METRIC_PORT", "QUEUE_ITEM", "LOGLEVEL"):
        done = run(service, **{name: "hunter2"})
        assert done.exit_code == 1
        assert f"ASSAY_{service}_{name}; did you mean 'ASSAY_{service}_" in done.stderr
        assert "hunter2" not in done.output
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("service", CLIS)
def test_what_is_another_programs_is_passed_over(service: str) -> None:
    others = {f"ASSAY_{other}_NONSENSE": "1" for other in CLIS if other != service}
    others |= {
        f"ASSAY_{name}": "1"
        for name in ("BIND", "TAG", "TARGET", "TOKEN", "TLS_CA", "GPU", "CACHE", "UID", "MODELS",
                     "TRACE_ITEMS", "PYTHON_IMAGE", "HTTP_PORT_SANDBOX", f"{service}S_WORKERS",
                     service, f"{service}_MEMORY")
    }  # fmt: skip
    with environment(others):
        done = CliRunner().invoke(CLIS[service], ["--print-config"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("service", CLIS)
@pytest.mark.parametrize("name", ["", "SERVER_", "HTTP_", "METRICS_", "A_B_"])
def test_the_links_of_kubernetes_are_passed_over(service: str, name: str) -> None:
    link = "tcp://10.96.0.7:50051"
    made = {"PORT": link, "SERVICE_HOST": "10.96.0.7", "SERVICE_PORT": "50051",
            "SERVICE_PORT_GRPC": "50051", "PORT_50051_TCP": link, "PORT_50051_TCP_PROTO": "tcp",
            "PORT_50051_TCP_PORT": "50051", "PORT_50051_TCP_ADDR": "10.96.0.7",
            "PORT_53_UDP": "udp://10.96.0.7:53"}  # fmt: skip
    done = run(service, "--print-config", **{name + key: text for key, text in made.items()})
    assert done.exit_code == 0, done.output
    assert done.stdout == run(service, "--print-config").stdout


def test_a_link_beside_a_setting_of_that_name_does_not_hide_it() -> None:
    done = run("REWARD", "--print-config", PORT="50099", SERVER_PORT="tcp://10.0.0.1:1")
    assert "port = 50099  # environment" in done.stdout
    assert run("REWARD", SERVER_PORT="50099").exit_code == 1


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("wrokers = 3", "no setting is named 'wrokers'; did you mean 'workers'?"),
        ("[workers]\nx = 1", "workers must be a whole number, not a table"),
        ("[reward]\nworkers = 1", "no table is named 'reward'"),
        ('workers = "3"', "workers must be a whole number, not a text"),
        ("workers = true", "workers must be a whole number, not true or false"),
        ("drain-s = true", "drain-s must be a number, not true or false"),
        ("trusted-network = 1", "trusted-network must be true or false, not a int"),
        ("journal = 5", "journal must be a text, not a int"),
        ('profiles = "a.toml"', "profiles must be an array of texts, not a text"),
        ("profiles = [1]", "profiles must be an array of texts, not an array"),
        ("port = 70000", "port: 70000 is not in the range"),
        ('log-level = "LOUD"', "log-level: 'LOUD' is not one of"),
        ("drain-s = -1.0", "drain-s: -1.0 is not in the range"),
        ("queue-mb = 64\nqueue_mb = 64", "queue-mb stands there twice"),
        ('config = "x.toml"', "no setting is named 'config'"),
        ('token = "hunter2"', "no setting is named 'token'; did you mean 'token-file'?"),
        ('"tok\\u001b[2Jen" = "hunter2"', "no setting is named 'tok\\x1b[2Jen'"),
        ('log-level = "hunter2', "is not valid TOML"),
        ("workers = " + "[" * 5000, "is not valid TOML"),
        ("queue-items = 0", "--queue-items must be 1 or more (set by queue-items in "),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line_that_names_file_and_key(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "service.toml"
    path.write_text(text)
    done = run("REWARD", "--config", str(path))
    assert done.exit_code == 1
    [line] = done.stderr.splitlines()
    assert told in line
    assert str(path) in line
    assert "hunter2" not in line


def test_who_set_what_cannot_be_is_named() -> None:
    done = run("SANDBOX", QUEUE_ITEMS="0")
    assert "--queue-items must be 1 or more (set by ASSAY_SANDBOX_QUEUE_ITEMS)" in done.stderr
    done = run("SANDBOX", "--queue-items=0")
    assert done.stderr == "assay sandbox: --queue-items must be 1 or more\n"


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "reward.toml").write_text("")
    done = run("REWARD", CONFIG=str(tmp_path / "rewrad.toml"))
    assert done.exit_code == 1
    assert "does not exist; did you mean 'reward.toml'?" in done.stderr


@pytest.mark.parametrize("service", CLIS)
def test_what_is_printed_holds_no_token(service: str) -> None:
    done = run(service, "--print-config", TOKEN="hunter2")
    assert done.exit_code == 0
    assert f"# ASSAY_{service}_TOKEN is set\n" in done.stdout
    assert "hunter2" not in done.output


@pytest.mark.parametrize("service", CLIS)
def test_help_says_the_law(service: str) -> None:
    text = " ".join(run(service, "--help").output.split())
    assert "before the environment, that before the file, that before the default" in text


def test_every_variable_that_containers_get_is_a_setting(repository: Path) -> None:
    found = [
        pair
        for path in (*repository.glob("compose*.yaml"), *repository.glob("docs/*.md"))
        for pair in COMPOSE.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 20
    for folder in ("reward_server", "sandbox", "genrm"):
        text = (repository / folder / "Dockerfile").read_text(encoding="utf-8")
        found += re.findall(r"\b(ASSAY_(REWARD|SANDBOX|GENRM)_[A-Z_]+)=", text)
    for name, service in found:
        known = {next(iter(as_variable(service, one, "x"))) for one in settings_of(CLIS[service])}
        secrets = {f"ASSAY_{service}_{one}TOKEN" for one in ("", "SANDBOX_", "GENRM_", "REWARD_")}
        assert name in known | secrets, name
