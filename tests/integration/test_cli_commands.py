"""The `assay` command and its small subcommands."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from assay.cli.commands.doctor import look_at_certificate, look_at_packages
from assay.cli.commands.up import choose_http_ports, choose_ports
from assay.cli.main import _BROUGHT_BY, _SUMMARIES, GROUP, run
from assay.clients import RewardClient
from assay.clients.services import absent_plug_ins, installed_plug_ins
from assay.clients.testing import FakeRewardServer, exact_info
from assay.kit.errors import ConfigError
from assay.kit.pool.places import HOW_TO_INSTALL_RAY
from assay.kit.tls import ServerTls
from certificates import make_certificates

COMMAND = [sys.executable, "-c", "from assay.cli.__main__ import main; main()"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing"], 2, "No such command 'nothing' (see"),
        (["scoer"], 2, "No such command 'scoer'; did you mean 'score'?"),
        (["score"], 2, "Missing argument"),
        (["score", "a"], 2, "Missing option"),
        (["score", "a", "-o", "b", "--timeout", "soon"], 2, "not a valid float"),
        (["up", "--port", "99999"], 2, "99999"),
        (["up", "--port", "65535"], 1, "choose a lower one"),
        (["serve", "nothing"], 1, "reward, sandbox, genrm"),
        (["verifiers", "--target", "127.0.0.1:1"], 1, "127.0.0.1:1"),
        (["verifiers", "--target", "x"], 1, "not HOST:PORT"),
        (["doctor", "--target", "x:y"], 1, "not HOST:PORT"),
    ],
)
def test_errors_are_one_line(
    arguments: Sequence[str],
    code: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "assay.cli.commands.up.installed_services", lambda: {"reward": None, "sandbox": None}
    )
    if arguments[:2] != ["up", "--port"]:
        monkeypatch.undo()
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("assay: error: ")
    assert err.count("\n") == 1
    assert says in err


def test_help_lists_the_commands_without_loading_them() -> None:
    program = "import sys; from assay.cli.main import run; run(['--help'])"
    program += "; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    for name in ("up", "serve", "score", "verifiers", "doctor", "train"):
        assert re.search(rf"^  {name} ", done.stdout, re.MULTILINE)
    assert done.stdout.endswith("False\n")


def commands() -> list[EntryPoint]:
    return [entry for entry in entry_points(group=GROUP) if entry.module.startswith("assay.")]


def test_every_command_has_a_line_in_the_help_and_examples_on_lines_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for entry in commands():
        assert _SUMMARIES[entry.name]
        assert run([entry.name, "--help"]) == 0
        out = capsys.readouterr().out
        assert "\\b" not in out, entry.name
        assert not re.search(r"\S +assay (train|score|code-prm|ladder|label)[\w-]* \S+\.", out), out


def test_a_command_that_is_not_installed_names_its_package(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = {
        entry.name: entry.dist.name
        for entry in commands()
        if entry.dist and entry.dist.name != "assay-rl-clients"
    }
    assert theirs == _BROUGHT_BY
    monkeypatch.setattr("assay.cli.main.entry_points", lambda group: ())
    for name, package in _BROUGHT_BY.items():
        assert run([name]) == 1
        err = capsys.readouterr().err
        folder = package.removeprefix("assay-rl-").replace("-", "_")
        beside = "./math " if package == "assay-rl-reward-server" else ""
        where = f"in a checkout of Assay, run: pip install {beside}./{folder}\n"
        assert f"comes with {package}; {where}" in err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert re.match(r"assay, version \d", capsys.readouterr().out)


def test_verifiers_as_table_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeRewardServer() as server:
        assert run(["verifiers", "--target", server.address]) == 0
        shown = capsys.readouterr().out
        assert "exact" in shown
        assert "assay-rl-verifiers-extra would add abstention, arc, " in shown
        assert run(["verifiers", "--target", server.address, "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert info["verifiers"][0]["name"] == "exact"
    assert info["limits"]["max_items"] == 1024


def test_verifiers_print_a_line_each_or_all_of_those_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long, house = exact_info(), exact_info()
    long.name, long.description = "a-very-long-name-of-a-verifier", "Words " * 40 + ". More."
    house.name, house.is_profile = "house", True
    del house.tasks[:]
    monkeypatch.delenv("COLUMNS", raising=False)  # as in a pipe, which fits nothing
    with FakeRewardServer(verifiers=[exact_info(), long, house]) as server:
        target = ("--target", server.address)
        assert run(["verifiers", *target]) == 0
        whole = capsys.readouterr().out.splitlines()
        monkeypatch.setenv("COLUMNS", "70")
        assert run(["verifiers", *target]) == 0
        fitted = capsys.readouterr().out.splitlines()
        assert run(["verifiers", "house", *target]) == 0
        one = capsys.readouterr().out
        assert run(["verifiers", "--long", *target]) == 0
        all_of_them = capsys.readouterr().out
        assert run(["verifiers", "hous", *target]) == 1
        unknown = capsys.readouterr().err
        assert run(["verifiers", "house", "--json", *target]) == 0
        (told,) = json.loads(capsys.readouterr().out)["verifiers"]
    assert [line.split()[0] for line in whole[:3]] == ["exact", long.name, "house"]
    assert whole[1].endswith("Words .")
    assert "More" not in whole[1]
    assert "profile" in whole[2]
    assert "0..1" in whole[0]
    assert {len(line) for line in fitted[1:2]} == {70}
    assert max(map(len, fitted[:3])) == 70
    assert fitted[1].endswith("…")
    assert one.startswith("house: ")
    assert "kind" in one
    assert "would add" not in one
    assert all(f"{name}: " in all_of_them for name in ("exact", "house", long.name))
    assert "did you mean 'house'?" in unknown
    assert told["name"] == "house"


@pytest.mark.slow
def test_doctor_finds_a_server_and_misses_one(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeRewardServer() as server:
        assert run(["doctor", "--target", server.address]) == 0
        assert "assay-rl-reward-server" in capsys.readouterr().out
    assert run(["doctor", "--target", "127.0.0.1:1"]) == 1
    assert "not ok" in capsys.readouterr().out


def test_doctor_says_what_is_plugged_in_and_what_would_add_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def found() -> str:
        return {one.what: one.found for one in look_at_packages()}["plug-ins"]

    assert {
        "assay-rl-compat",
        "assay-rl-docker-backend",
        "assay-rl-ray-pool",
        "assay-rl-verifiers-extra",
    } <= set(found().split("; "))
    here = installed_plug_ins()
    monkeypatch.setattr("assay.clients.services.version", absent)
    monkeypatch.setattr("assay.clients.services.entry_points", lambda group: [])
    assert here
    assert "assay-rl-verifiers-extra would add the verifiers abstention, arc, " in found()
    assert found().endswith("in a checkout of Assay, run: pip install ./plugins/verifiers_extra")


def absent(name: str) -> str:
    raise PackageNotFoundError(name)


def test_doctor_says_whether_there_is_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found, and not imported."""

    def found() -> str:
        return {one.what: one.found for one in look_at_packages()}["--pool"]

    if find_spec("ray") is None:
        assert found() == f"local, ray; ray is not installed; {HOW_TO_INSTALL_RAY}"
    (tmp_path / "ray.py").write_text("raise AssertionError('imported')")
    info = tmp_path / "ray-2.60.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ray\nVersion: 2.60.1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert found() == "local, ray; ray 2.60.1"


def test_doctor_reads_certificates_that_nobody_trusts(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    for pair, says in ((made.server, "127.0.0.1, until"), (made.expired, "expired on")):
        with FakeRewardServer(tls=ServerTls(pair.cert_file, pair.key_file)) as server:
            found = look_at_certificate(server.address)
        assert found is not None
        assert says in found.found
        assert found.fine is False  # both end within a week
    with FakeRewardServer() as plain:
        assert look_at_certificate(plain.address) is None
    assert look_at_certificate("127.0.0.1:1") is None


def test_ports_of_services() -> None:
    assert choose_ports(["genrm", "reward"], 50051) == {"genrm": 50053, "reward": 50051}
    assert choose_ports(["reward", "other"], 100) == {"reward": 100, "other": 103}
    assert choose_ports(["reward"], 0) == {"reward": 0}
    with pytest.raises(ConfigError, match="lower"):
        choose_ports(["reward", "genrm"], 65534)


def test_http_of_services() -> None:
    assert choose_http_ports(["genrm", "reward", "sandbox"], 8080) == {
        "reward": 8080,
        "sandbox": 8081,
    }
    assert choose_http_ports(["sandbox"], 8080) == {"sandbox": 8081}
    assert choose_http_ports(["reward"], None) == {}


def test_what_would_add_to_the_services_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(absent_plug_ins()) == [], "the tests' environment has them"
    monkeypatch.setattr("assay.clients.services.version", absent)
    told = "\n".join(absent_plug_ins())
    assert "assay-rl-compat would add" in told
    assert "pip install ./plugins/compat" in told
    assert "assay-rl-docker-backend would add back ends of the sandbox" in told
    assert "pip install ./plugins/docker_backend" in told
    assert f"(--pool ray); {HOW_TO_INSTALL_RAY}" in told


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_up_starts_services_and_stops_them(stop: signal.Signals) -> None:
    command = [*COMMAND, "up", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        found = None
        for line in up.stdout:
            found = found or re.search(r"reward .*?(127\.0\.0\.1:\d+).*serving", line)
            if "Ctrl-C" in line:
                break
        assert found is not None
        address = found.group(1)
        with RewardClient(address) as client:
            assert client.list_verifiers().find("math") is not None
        up.send_signal(stop)
        out, err = up.communicate(timeout=60)
    assert (up.returncode, err) == (0, "")
    assert "stopped" in out
    assert run(["verifiers", "--target", address]) == 1


def test_up_is_stopped_while_it_starts() -> None:
    command = [*COMMAND, "up", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        assert "starting" in up.stdout.readline()
        up.send_signal(signal.SIGINT)
        out, err = up.communicate(timeout=60)
    assert (up.returncode, out, err) == (130, "", "")


@pytest.mark.slow
def test_up_speaks_http_where_it_is_asked_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    command = [*COMMAND, "up", "--port", "0", "--http-port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        shown = "".join(iter(up.stdout.readline, "Ctrl-C stops them.\n"))
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            assert answer.status == 200
        up.send_signal(signal.SIGINT)
        up.communicate(timeout=60)
    assert f"http://127.0.0.1:{port}" in shown


def test_serve_genrm_without_a_model_says_how_to_name_one() -> None:
    command = [*COMMAND, "serve", "genrm", "--port", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(
        r"assay genrm: there is no model to serve: .*--model NAME=PATH.*\n", done.stderr
    )


@pytest.mark.slow
def test_serve_becomes_the_service() -> None:
    command = [*COMMAND, "serve", "reward", "--port", "0", "--workers", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        ready = re.match(r"assay reward_server ready on (\S+)", server.stdout.readline())
        assert ready is not None
        with RewardClient(ready.group(1)) as client:
            assert client.list_verifiers().find("exact") is not None
        server.terminate()
        assert server.wait(60) == 0
