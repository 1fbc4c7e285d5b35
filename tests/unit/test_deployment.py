"""compose.yaml, the Dockerfiles and docs/operate/deployment.md, held to their promises, by reading.

What they do when they run: tests/compose, by `make test-docker`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from assay.reward_server.__main__ import cli
from assay.sandbox.__main__ import cli as sandbox_cli
from assay.viewer.command import view

SERVICES = ("reward_server", "sandbox", "genrm")
WATCHERS = ("prometheus", "grafana", "otel-collector")
OTHERS = (*WATCHERS, "envoy")
FILES = (
    "compose.yaml",
    "compose.gpu.yaml",
    "compose.secrets.yaml",
    "compose.http.yaml",
    "compose.sandbox-http.yaml",
    "compose.sessions.yaml",
    "compose.viewer.yaml",
)
# What both Compose 1.29 and Compose 2 know, of what there is to say of a service.
KNOWN = {
    "build", "image", "profiles", "ports", "environment", "depends_on", "networks", "user",
    "read_only", "tmpfs", "volumes", "cap_drop", "security_opt", "mem_limit", "pids_limit",
    "stop_grace_period", "restart", "logging", "secrets", "deploy", "command", "entrypoint",
    "cap_add", "ulimits", "healthcheck",
}  # fmt: skip


def read(repository: Path, name: str = "compose.yaml") -> dict[str, Any]:
    found = yaml.safe_load((repository / name).read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("name", FILES)
def test_both_versions_of_compose_know_every_word(repository: Path, name: str) -> None:
    found = read(repository, name)
    assert set(found) <= {"services", "networks", "volumes", "secrets", "x-logging"}
    assert set(found["services"]) <= {
        *SERVICES,
        *OTHERS,
        "sandbox_http",
        "sandbox_sessions",
        "viewer",
    }
    for service in found["services"].values():
        assert set(service) <= KNOWN
        assert all(set(on) == {"condition"} for on in service.get("depends_on", {}).values())


@pytest.mark.parametrize("name", [*SERVICES, *OTHERS])
def test_a_service_may_as_little_as_possible(repository: Path, name: str) -> None:
    service = read(repository)["services"][name]
    assert service["user"].partition(":")[0] in {"65532", "65534", "472", "10001"}
    assert name in OTHERS or service["user"] == "65532:65532"
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges" in service["security_opt"]
    assert service["mem_limit"]
    assert service["pids_limit"] > 0
    assert all(
        mount.endswith(":ro") or not mount.startswith((".", "/", "$"))
        for mount in service.get("volumes", [])
    )


def test_one_port_is_published_and_on_loopback(repository: Path) -> None:
    services = read(repository)["services"]
    published = {name: services[name]["ports"] for name in services if "ports" in services[name]}
    assert published == {
        "reward_server": ["${ASSAY_BIND:-127.0.0.1}:${ASSAY_PORT:-50051}:50051"],
        # Where they are asked for.
        "grafana": ["127.0.0.1:${ASSAY_GRAFANA_PORT:-3000}:3000"],
        "otel-collector": ["127.0.0.1:${ASSAY_OTLP_PORT:-4317}:4317"],
        "envoy": ["${ASSAY_BIND:-127.0.0.1}:${ASSAY_ENVOY_PORT:-50050}:50051"],
    }


def test_http_is_published_where_grpc_is_and_only_when_asked_for(repository: Path) -> None:
    [port] = read(repository, "compose.http.yaml")["services"]["reward_server"]["ports"]
    [grpc] = read(repository)["services"]["reward_server"]["ports"]
    assert port.partition("}:")[0] == grpc.partition("}:")[0]
    settings = read(repository, "compose.http.yaml")["services"]["reward_server"]["environment"]
    assert settings == ["ASSAY_REWARD_HTTP_PORT=8080", "ASSAY_REWARD_HTTP_BIND=0.0.0.0"]
    assert {"http_port", "http_bind"} <= {option.name for option in cli.params}


def test_the_viewer_is_published_on_loopback_and_asks_for_a_token(repository: Path) -> None:
    read_here = read(repository, "compose.viewer.yaml")["services"]
    viewer, server = read_here["viewer"], read_here["reward_server"]
    plain = read(repository)["services"]["reward_server"]
    for name in ("user", "read_only", "cap_drop", "security_opt", "image"):
        assert viewer[name] == plain[name]
    assert server.keys() == {"environment"}, "its HTTP is published nowhere"
    told = dict(one.split("=", 1) for one in server["environment"])
    assert (
        viewer["command"][-1]
        == f"dns+http://reward_server:{told['ASSAY_REWARD_HTTP_PORT']}/journal"
    )
    assert {one.partition("=")[0] for one in viewer["command"][:-1]} <= {
        option for flag in view.params for option in flag.opts
    }
    asked = dict(one.split("=", 1) for one in viewer["environment"])
    assert asked["ASSAY_VIEW_TOKEN"].startswith("${ASSAY_REWARD_TOKEN:?")
    [port] = viewer["ports"]
    assert port.startswith("${ASSAY_BIND:-127.0.0.1}:")


def test_the_sandboxs_http_is_published_by_a_relay_and_asks_for_a_token(repository: Path) -> None:
    read_here = read(repository, "compose.sandbox-http.yaml")["services"]
    sandbox, relay = read_here["sandbox"], read_here["sandbox_http"]
    assert sandbox.keys() == {"environment"}, "it stays in a network without a way out"
    assert read(repository)["services"]["sandbox"]["networks"] == ["back"]
    settings = dict(told.split("=", 1) for told in sandbox["environment"])
    assert settings["ASSAY_SANDBOX_TRUSTED_NETWORK"] == "false"
    [port] = relay["ports"]
    bind = port.partition("}:")[0] + "}"
    assert settings["ASSAY_SANDBOX_PUBLISHED_ON"] == bind == "${ASSAY_BIND:-127.0.0.1}"
    [mounted] = [one.split(":")[0] for one in relay["volumes"]]
    told = yaml.safe_load((repository / mounted).read_text(encoding="utf-8"))["static_resources"]
    [listener], [cluster] = told["listeners"], told["clusters"]
    [endpoint] = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
    address = endpoint["endpoint"]["address"]["socket_address"]
    ports = {settings["ASSAY_SANDBOX_HTTP_PORT"], port.rpartition(":")[2],
             str(address["port_value"]),
             str(listener["address"]["socket_address"]["port_value"])}  # fmt: skip
    assert (ports, address["address"]) == ({"8081"}, "sandbox")
    names = {option.name for option in sandbox_cli.params}
    assert {name.removeprefix("ASSAY_SANDBOX_").lower() for name in settings} <= names


def test_sessions_are_published_by_envoy_and_ask_for_a_token(repository: Path) -> None:
    services = read(repository, "compose.sessions.yaml")["services"]
    sandbox, envoy = services["sandbox"], services["sandbox_sessions"]
    assert not {"networks", "ports"} & set(sandbox), "it stays in a network without a way out"
    settings = dict(told.split("=", 1) for told in sandbox["environment"])
    assert settings["ASSAY_SANDBOX_TRUSTED_NETWORK"] == "false"
    [port] = envoy["ports"]
    bind = port.partition("}:")[0] + "}"
    assert settings["ASSAY_SANDBOX_PUBLISHED_ON"] == bind == "${ASSAY_BIND:-127.0.0.1}"
    [mounted] = [one.split(":")[0] for one in envoy["volumes"]]
    told = yaml.safe_load((repository / mounted).read_text(encoding="utf-8"))["static_resources"]
    called, _ = told["clusters"]
    [end] = called["load_assignment"]["endpoints"][0]["lb_endpoints"]
    address = end["endpoint"]["address"]["socket_address"]
    listener = told["listeners"][0]["address"]["socket_address"]["port_value"]
    assert port.endswith(f":{listener}")
    assert address == {"address": "sandbox", "port_value": 50052}
    # The image's own command, and the address as the name.
    command = " ".join(sandbox["entrypoint"])
    [image] = [one for one in instructions(repository, "sandbox") if one.startswith("ENTRYPOINT")]
    assert " ".join(re.findall(r'"(.*?)"', image)) in command
    assert command.endswith('--replica-name "$$(hostname -i):50052"')


def test_a_sandbox_that_is_stopped_lasts_as_long_as_its_sessions_may(repository: Path) -> None:
    sandbox = read(repository, "compose.sessions.yaml")["services"]["sandbox"]
    settings = dict(told.split("=", 1) for told in sandbox["environment"])
    drain_s = int(settings["ASSAY_SANDBOX_SESSION_DRAIN_S"].rpartition(":-")[2].rstrip("}"))
    assert int(sandbox["stop_grace_period"].rstrip("s")) > drain_s + 10
    names = {option.name for option in sandbox_cli.params}
    assert {name.removeprefix("ASSAY_SANDBOX_").lower() for name in settings} <= names


def test_who_watches_is_started_only_when_asked_for_and_pinned(repository: Path) -> None:
    services = read(repository)["services"]
    assert {name for name in services if services[name].get("profiles") == ["observability"]} == {
        *WATCHERS
    }
    assert services["envoy"]["profiles"] == ["envoy"]
    for name in OTHERS:
        assert re.fullmatch(r"\$\{ASSAY_\w+:-\w+/[\w-]+:v?\d+\.\d+\.\d+\}", services[name]["image"])


def test_prometheus_reads_every_service_once_and_grafana_none(repository: Path) -> None:
    services = read(repository)["services"]
    config = yaml.safe_load((repository / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))
    read_at = {
        (name, job["job_name"], found["port"])
        for job in config["scrape_configs"]
        for found in job["dns_sd_configs"]
        for name in found["names"]
    }
    assert read_at == {(name, name, 9464) for name in (*SERVICES, "envoy")}
    assert len({*services["envoy"]["networks"]} & {*services["prometheus"]["networks"]}) == 1
    for name, prefix in zip(SERVICES, ("REWARD", "SANDBOX", "GENRM"), strict=True):
        settings = services[name]["environment"]
        assert f"ASSAY_{prefix}_METRICS_PORT=9464" in settings
        assert f"ASSAY_{prefix}_METRICS_HOST=0.0.0.0" in settings
        shared = set(services[name]["networks"]) & set(services["prometheus"]["networks"])
        assert len(shared) == 1
        assert not set(services[name]["networks"]) & set(services["grafana"]["networks"])


def test_the_collector_hears_every_service_where_spans_are_asked_for(repository: Path) -> None:
    services = read(repository)["services"]
    collector = services["otel-collector"]
    config = yaml.safe_load(
        (repository / "deploy" / "otel-collector.yml").read_text(encoding="utf-8")
    )
    port = config["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].rpartition(":")[2]
    for name in SERVICES:
        settings = services[name]["environment"]
        assert "OTEL_TRACES_EXPORTER=${OTEL_TRACES_EXPORTER:-none}" in settings
        [endpoint] = [told for told in settings if told.startswith("OTEL_EXPORTER_OTLP_ENDPOINT=")]
        assert endpoint.endswith(f":-http://otel-collector:{port}}}")
        assert set(services[name]["networks"]) & set(collector["networks"])
    named = [part for pipeline in config["service"]["pipelines"].values() for part in pipeline]
    assert sorted(named) == ["exporters", "processors", "receivers"]
    for kind, parts in config["service"]["pipelines"]["traces"].items():
        assert set(parts) <= set(config[kind])


def test_envoy_meets_the_reward_server_on_one_network_and_the_sandbox_on_none(
    repository: Path,
) -> None:
    """On two each replica would be there twice."""
    services = read(repository)["services"]
    networks = set(services["envoy"]["networks"])
    assert len(networks & set(services["reward_server"]["networks"])) == 1
    assert not networks & set(services["sandbox"]["networks"])
    config = yaml.safe_load((repository / "deploy/envoy/envoy.yaml").read_text(encoding="utf-8"))
    called, _ = config["static_resources"]["clusters"]
    [end] = called["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert end["endpoint"]["address"]["socket_address"] == {
        "address": "reward_server",
        "port_value": 50051,
    }
    mounted = "./deploy/envoy/envoy.yaml:/etc/envoy/envoy.yaml:ro"
    assert services["envoy"]["volumes"] == [mounted]


def test_the_sandbox_is_on_internal_networks_only(repository: Path) -> None:
    compose = read(repository)
    of_sandbox = compose["services"]["sandbox"]["networks"]
    assert all(compose["networks"][name]["internal"] is True for name in of_sandbox)
    assert not set(of_sandbox) & set(compose["services"]["genrm"]["networks"])
    assert set(of_sandbox) < set(compose["services"]["reward_server"]["networks"])


def test_a_service_without_a_token_is_reached_from_loopback_or_private_networks_alone(
    repository: Path,
) -> None:
    services = read(repository)["services"]
    for name in SERVICES:
        prefix = f"ASSAY_{name.removesuffix('_server').upper()}"
        environment = services[name]["environment"]
        trusts = f"{prefix}_TRUSTED_NETWORK=true" in environment
        assert trusts == ("ports" not in services[name])
    [port] = services["reward_server"]["ports"]
    published = port.removesuffix(":${ASSAY_PORT:-50051}:50051")
    assert f"ASSAY_REWARD_PUBLISHED_ON={published}" in services["reward_server"]["environment"]


@pytest.mark.parametrize("service", SERVICES)
def test_an_image_by_itself_asks_for_a_token(repository: Path, service: str) -> None:
    text = "\n".join(instructions(repository, service))
    assert "0.0.0.0" in text
    assert not re.search("trusted.network|published.on", text, flags=re.IGNORECASE)


def test_code_is_judged_out_of_the_box(repository: Path) -> None:
    reward = read(repository)["services"]["reward_server"]
    assert "ASSAY_REWARD_SANDBOX_TARGET=sandbox:50052" in reward["environment"]
    assert reward["depends_on"] == {"sandbox": {"condition": "service_healthy"}}


def instructions(repository: Path, service: str) -> list[str]:
    """The instructions of a Dockerfile, each on one line."""
    text = (repository / service / "Dockerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    return [line for line in lines.replace("\\\n", " ").splitlines() if line.strip()]


@pytest.mark.parametrize("service", SERVICES)
def test_a_dockerfile_has_two_stages_a_user_and_a_health_check(
    repository: Path, service: str
) -> None:
    lines = instructions(repository, service)
    assert [line.split()[0] for line in lines].count("FROM") == 2
    last = lines[max(n for n, line in enumerate(lines) if line.startswith("FROM")) :]
    assert "USER 65532:65532" in last
    [health] = [line for line in last if line.startswith("HEALTHCHECK")]
    assert "assay.kit.health" in health
    assert not re.search(r"\b(curl|wget|pip)\b", " ".join(last))
    assert "org.opencontainers.image.licenses" in " ".join(last)


def test_dockerfiles_begin_alike_so_that_wheels_are_copied_once(repository: Path) -> None:
    first, *others = (instructions(repository, service) for service in SERVICES)
    copied = next(n for n, line in enumerate(first) if "PIP_CONSTRAINT" in line)
    assert all(other[: copied + 1] == first[: copied + 1] for other in others)


def test_the_build_context_holds_what_is_copied_and_no_more(repository: Path) -> None:
    lines = (repository / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    assert lines[1] == "*"
    copied = {
        source
        for service in SERVICES
        for line in instructions(repository, service)
        if line.startswith("COPY") and "--from" not in line
        for source in line.split()[1:-1]
    }
    assert copied == kept - {"wheelhouse"} | {"${WHEELHOUSE}"}


def test_every_variable_is_documented_and_no_other(repository: Path) -> None:
    used: set[str] = set()
    for name in FILES:
        text = (repository / name).read_text(encoding="utf-8")
        uncommented = re.sub(r"#.*", "", text)
        used |= set(re.findall(r"\$\{([A-Z_]+)", uncommented))
        used |= set(re.findall(r"- (ASSAY_[A-Z_]+)\n", uncommented))
    page = (repository / "docs" / "operate" / "deployment.md").read_text(encoding="utf-8")
    table = page.partition("<!-- variables")[2].partition("<!-- end of variables")[0]
    assert set(re.findall(r"^\| `([A-Z_]+)`", table, flags=re.MULTILINE)) == used
