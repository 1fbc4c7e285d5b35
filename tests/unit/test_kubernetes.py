"""deploy/kubernetes held to Kubernetes' own schemas and to compose.yaml, by reading it.

No cluster is asked: what these manifests do when they run is not tested here.
"""

from __future__ import annotations

import copy
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from assay.genrm.__main__ import cli as genrm_cli
from assay.genrm.metrics import JudgeMetrics
from assay.reward_server import counts
from assay.reward_server.__main__ import cli as reward_cli
from assay.sandbox import metrics
from assay.sandbox.__main__ import cli as sandbox_cli
from assay.viewer.command import view
from assay.viewer.mirror import is_remote

OLDEST, NEWEST = "1.30", "1.37"
FILES = (
    "base/namespace.yaml",
    "base/reward-server.yaml",
    "base/sandbox.yaml",
    "base/network.yaml",
    "genrm/genrm.yaml",
    "genrm-queue-depth/autoscaler.yaml",
    "genrm-queue-depth/network.yaml",
    "queue-depth/network.yaml",
    "traces/config.yaml",
    "traces/network.yaml",
    "traces-of-sandbox/network.yaml",
    "sessions/service.yaml",
    "sessions/network.yaml",
    "viewer/viewer.yaml",
    "viewer/network.yaml",
)
# name: port, the service of compose.yaml, the beginning of its variables, its flags
SERVICES = {
    "reward-server": (50051, "reward_server", "ASSAY_REWARD_", reward_cli),
    "sandbox": (50052, "sandbox", "ASSAY_SANDBOX_", sandbox_cli),
    "genrm": (50053, "genrm", "ASSAY_GENRM_", genrm_cli),
}
NAME = "app.kubernetes.io/name"


@pytest.fixture(scope="module")
def documents(repository: Path) -> list[dict[str, Any]]:
    """Every document of every file."""
    folder = repository / "deploy" / "kubernetes"
    found = [
        document
        for name in FILES
        for document in yaml.safe_load_all((folder / name).read_text(encoding="utf-8"))
    ]
    assert len(found) == len(
        {(document["kind"], document["metadata"]["name"]) for document in found}
    )
    return found


@pytest.fixture
def fresh(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same, to be changed."""
    return copy.deepcopy(documents)


def find(documents: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    (one,) = [d for d in documents if (d["kind"], d["metadata"]["name"]) == (kind, name)]
    return one


def container_of(deployment: dict[str, Any]) -> dict[str, Any]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_the_schemas_of_kubernetes_are_kept(documents: list[dict[str, Any]], version: str) -> None:
    for document in documents:
        kubernetes_validate.validate(document, version, strict=True)


def keys_of(value: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every mapping of a document with each of its keys."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield value, key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


@pytest.mark.parametrize(
    "key", ["replicas", "securityContext", "readinessProbe", "localhostProfile"]
)
def test_the_schemas_notice_a_misspelt_key(documents: list[dict[str, Any]], key: str) -> None:
    document = copy.deepcopy(find(documents, "Deployment", "sandbox"))
    document["spec"]["replicas"] = 2
    where = next(mapping for mapping, name in keys_of(document) if name == key)
    where[f"{key}s"] = where.pop(key)
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(document, NEWEST, strict=True)


@pytest.mark.parametrize("name", SERVICES)
def test_a_pod_may_as_little_as_its_container_in_compose(
    documents: list[dict[str, Any]], repository: Path, name: str
) -> None:
    compose = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))
    service = compose["services"][SERVICES[name][1]]
    pod = find(documents, "Deployment", name)["spec"]["template"]["spec"]
    container = container_of(find(documents, "Deployment", name))
    user = pod["securityContext"]
    assert f"{user['runAsUser']}:{user['runAsGroup']}" == service["user"]
    assert user["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,  # no-new-privileges
        "readOnlyRootFilesystem": service["read_only"],
        "capabilities": {"drop": service["cap_drop"]},
    }
    own_profile = "seccomp=sandbox/seccomp.json" in service["security_opt"]
    profile = {"type": "Localhost", "localhostProfile": "assay/sandbox.json"}
    assert user["seccompProfile"] == (profile if own_profile else {"type": "RuntimeDefault"})
    assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    writable = {m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")}
    volumes = {volume.split(":")[1] for volume in service.get("volumes", []) if "cache" in volume}
    assert writable == {*service["tmpfs"], *volumes}
    assert all(
        set(volume) & {"emptyDir", "secret", "persistentVolumeClaim"} for volume in pod["volumes"]
    )


@pytest.mark.parametrize("name", SERVICES)
def test_what_belongs_together_names_one_another(
    documents: list[dict[str, Any]], repository: Path, name: str
) -> None:
    port, folder, prefix, command = SERVICES[name]
    deployment = find(documents, "Deployment", name)
    container = container_of(deployment)
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == deployment["spec"]["selector"]["matchLabels"] == {NAME: name}
    assert container["ports"] == [{"name": "grpc", "containerPort": port}]
    assert f"EXPOSE {port}" in (repository / folder / "Dockerfile").read_text(encoding="utf-8")
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[probe]["grpc"] == {"port": port}
    service = find(documents, "Service", name)["spec"]
    assert service["clusterIP"] == "None"
    assert service["selector"] == labels
    assert [entry["port"] for entry in service["ports"]] == [port]
    budget = find(documents, "PodDisruptionBudget", name)["spec"]
    assert budget["selector"]["matchLabels"] == labels
    options = [option for flag in command.params for option in flag.opts]
    flags = {prefix + option.lstrip("-").replace("-", "_").upper() for option in options}
    assert {entry["name"] for entry in container["env"]} <= flags


@pytest.mark.parametrize("name", ["reward-server", "sandbox"])
def test_the_autoscaler_alone_counts_replicas(documents: list[dict[str, Any]], name: str) -> None:
    deployment = find(documents, "Deployment", name)["spec"]
    scaler = find(documents, "HorizontalPodAutoscaler", name)["spec"]
    assert "replicas" not in deployment
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert scaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    budget = find(documents, "PodDisruptionBudget", name)["spec"]
    assert scaler["minReplicas"] > budget["minAvailable"]
    assert "cpu" in container_of(find(documents, "Deployment", name))["resources"]["requests"]


def test_the_sandbox_calls_nobody_and_the_reward_server_alone_calls_it(
    documents: list[dict[str, Any]],
) -> None:
    default = find(documents, "NetworkPolicy", "nothing")["spec"]
    assert default == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    policy = find(documents, "NetworkPolicy", "sandbox")["spec"]
    assert policy["egress"] == []
    assert "Egress" in policy["policyTypes"]
    caller = {"podSelector": {"matchLabels": {NAME: "reward-server"}}}
    assert policy["ingress"] == [{"from": [caller], "ports": [{"port": 50052, "protocol": "TCP"}]}]
    genrm = find(documents, "NetworkPolicy", "genrm")["spec"]
    assert [entry["from"] for entry in genrm["ingress"]] == [[caller]]


def test_the_sandbox_has_the_memory_that_its_slots_may_take(
    documents: list[dict[str, Any]],
) -> None:
    container = container_of(find(documents, "Deployment", "sandbox"))
    values = {entry["name"]: entry["value"] for entry in container["env"]}
    slots = int(values["ASSAY_SANDBOX_SLOTS"])
    most_mb = int(values["ASSAY_SANDBOX_MAX_MEMORY_MB"])
    limit = container["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    assert slots * (most_mb + 64) + 512 <= int(limit[:-2]) * 1024


def test_targets_are_names_of_headless_services(
    documents: list[dict[str, Any]], repository: Path
) -> None:
    component = yaml.safe_load(
        (repository / "deploy/kubernetes/genrm/kustomization.yaml").read_text(encoding="utf-8")
    )
    (patch,) = component["patches"]
    added = [o["value"] for o in yaml.safe_load(patch["patch"]) if o["path"].endswith("/env/-")]
    env = container_of(find(documents, "Deployment", "reward-server"))["env"] + added
    targets = {e["name"]: e["value"] for e in env if e["name"].endswith("_TARGET")}
    assert targets == {
        "ASSAY_REWARD_SANDBOX_TARGET": "dns:///sandbox:50052",
        "ASSAY_REWARD_GENRM_TARGET": "dns:///genrm:50053",
    }


def patches_of(repository: Path, component: str, kind: str, name: str) -> dict[str, Any]:
    """What a component adds to a document, by path."""
    folder = repository / "deploy" / "kubernetes" / component
    found = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    target = {"kind": kind, "name": name}
    (patch,) = [p["patch"] for p in found["patches"] if p["target"] == target]
    added: dict[str, Any] = {}
    for step in yaml.safe_load(patch):
        assert step["op"] == "add"
        added.setdefault(step["path"], []).append(step["value"])
    return added


@pytest.mark.parametrize(
    ("name", "metric"),
    [("reward-server", counts.RewardMetrics), ("sandbox", metrics.RunMetrics)],
)
def test_an_autoscaler_counts_what_waits_by_a_metric_that_is_shown(
    fresh: list[dict[str, Any]], repository: Path, name: str, metric: Any
) -> None:
    scaler = find(fresh, "HorizontalPodAutoscaler", name)
    added = patches_of(repository, "queue-depth", "HorizontalPodAutoscaler", name)
    ((waits,),) = added.values()
    scaler["spec"]["metrics"].append(waits)
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(scaler, version, strict=True)
    check_waits(repository, waits, metric)
    policy = find(fresh, "NetworkPolicy", "metrics")["spec"]
    assert name in policy["podSelector"]["matchExpressions"][0]["values"]
    check_shown(patches_of(repository, "queue-depth", "Deployment", name), policy, name)


def check_waits(repository: Path, waits: dict[str, Any], metric: Any) -> None:
    """An autoscaler's metric is one that the service shows, and that the adapter's rule brings."""
    wanted = waits["pods"]["metric"]["name"]
    assert int(waits["pods"]["target"]["averageValue"]) > 0
    shown = {family.name for c in metric().collectors for family in c.describe()}
    assert wanted in shown
    values = repository / "deploy/kubernetes/queue-depth/adapter-values.yaml"
    (rule,) = yaml.safe_load(values.read_text(encoding="utf-8"))["rules"]["custom"]
    (matches,) = re.findall(r'__name__=~"([^"]+)"', rule["seriesQuery"])
    assert [family for family in sorted(shown) if re.search(matches, family)] == [wanted]
    assert set(rule["resources"]["overrides"]) == {"namespace", "pod"}


def check_shown(pod: dict[str, Any], policy: dict[str, Any], name: str) -> None:
    """The port that Prometheus is let in at is the one that is shown, and said to it."""
    (port,) = pod["/spec/template/spec/containers/0/ports/-"]
    (notes,) = pod["/spec/template/metadata/annotations"]
    env = {e["name"]: e["value"] for e in pod["/spec/template/spec/containers/0/env/-"]}
    assert {policy["ingress"][0]["ports"][0]["port"], port["containerPort"]} == {9464}
    assert notes["prometheus.io/port"] == env[f"{SERVICES[name][2]}METRICS_PORT"] == "9464"
    options = [option for flag in SERVICES[name][3].params for option in flag.opts]
    flags = {SERVICES[name][2] + o.lstrip("-").replace("-", "_").upper() for o in options}
    assert set(env) <= flags


def test_judges_are_scaled_by_what_waits_for_them_alone(
    documents: list[dict[str, Any]], repository: Path
) -> None:
    scaler = find(documents, "HorizontalPodAutoscaler", "genrm")["spec"]
    deployment = find(documents, "Deployment", "genrm")["spec"]
    assert "replicas" not in deployment
    assert scaler["scaleTargetRef"]["name"] == "genrm"
    (waits,) = scaler["metrics"]
    check_waits(repository, waits, JudgeMetrics)
    policy = find(documents, "NetworkPolicy", "metrics-of-genrm")["spec"]
    assert policy["podSelector"]["matchLabels"] == {NAME: "genrm"}
    check_shown(patches_of(repository, "genrm-queue-depth", "Deployment", "genrm"), policy, "genrm")
    # A pod may load for as long as its start-up probe waits, and shrinking must not follow a burst.
    probe = container_of(find(documents, "Deployment", "genrm"))["startupProbe"]
    assert scaler["behavior"]["scaleUp"]["policies"][0]["value"] == 1
    window_s = scaler["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
    assert window_s >= probe["periodSeconds"] * probe["failureThreshold"]


def test_variables_of_traces_are_those_of_compose(
    documents: list[dict[str, Any]], repository: Path
) -> None:
    compose = yaml.safe_load((repository / "compose.yaml").read_text(encoding="utf-8"))
    said = [e.partition("=") for e in compose["services"]["reward_server"]["environment"]]
    defaults = {name: text for name, _, text in said if name.startswith("OTEL_")}
    told = find(documents, "ConfigMap", "traces")["data"]
    assert set(told) == set(defaults)
    sampling = {name for name in told if name.startswith("OTEL_TRACES_SAMPLER")}
    assert {name: defaults[name].strip("${}").split(":-")[1] for name in sampling} == {
        name: told[name] for name in sampling
    }
    code = "from assay.kit import tracing; print(tracing.set_up('x')); tracing.close()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | told,
        capture_output=True,
        check=True,
        text=True,
    )
    assert done.stdout == "True\n"


def test_the_sandbox_sends_spans_only_where_that_is_asked_for(
    fresh: list[dict[str, Any]], repository: Path
) -> None:
    """And who does may reach the collector that its variables name."""
    collector = find(fresh, "ConfigMap", "traces")["data"]["OTEL_EXPORTER_OTLP_ENDPOINT"]
    _, namespace, port = re.split(r"[.:]", collector.removeprefix("http://"))
    there = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    sending = {"traces": "reward-server|genrm", "traces-of-sandbox": "sandbox"}
    for component, names in sending.items():
        added = patches_of(repository, component, "Deployment", names)
        ((variables,),) = added.values()
        assert variables == [{"configMapRef": {"name": "traces"}}]
        assert list(added) == ["/spec/template/spec/containers/0/envFrom"]
        for name in names.split("|"):
            deployment = find(fresh, "Deployment", name)
            container_of(deployment)["envFrom"] = variables
            for version in (OLDEST, NEWEST):
                kubernetes_validate.validate(deployment, version, strict=True)
        policy = find(fresh, "NetworkPolicy", component)["spec"]
        assert policy["podSelector"] == {"matchLabels": {NAME: names.split("|")[0]}}
        assert policy["policyTypes"] == ["Egress"]
        assert policy["egress"][-1] == {
            "to": [there], "ports": [{"port": int(port), "protocol": "TCP"}]
        }  # fmt: skip
    names_are_answered = find(fresh, "NetworkPolicy", "reward-server")["spec"]["egress"][0]
    assert policy["egress"][:-1] == [names_are_answered]
    assert len(find(fresh, "NetworkPolicy", "traces")["spec"]["egress"]) == 1


def test_a_viewer_reads_every_reward_server(fresh: list[dict[str, Any]], repository: Path) -> None:
    """Behind the operator's token, by the port that the servers open for it alone."""
    added = patches_of(repository, "viewer", "Deployment", "reward-server")
    deployment = find(fresh, "Deployment", "reward-server")
    (port,) = added["/spec/template/spec/containers/0/ports/-"]
    env = added["/spec/template/spec/containers/0/env/-"]
    container = container_of(deployment)
    container["ports"].append(port)
    container["env"] += env
    container["volumeMounts"] += added["/spec/template/spec/containers/0/volumeMounts/-"]
    deployment["spec"]["template"]["spec"]["volumes"] += added["/spec/template/spec/volumes/-"]
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate(deployment, version, strict=True)
    told = {entry["name"]: entry["value"] for entry in env}
    options = [option for flag in reward_cli.params for option in flag.opts]
    assert set(told) <= {"ASSAY_REWARD_" + o.lstrip("-").replace("-", "_").upper() for o in options}
    viewer = find(fresh, "Deployment", "viewer")["spec"]
    pod, own = viewer["template"]["spec"], container_of(find(fresh, "Deployment", "viewer"))
    url = own["args"][-1]
    assert url == f"dns+http://reward-server:{told['ASSAY_REWARD_HTTP_PORT']}/journal"
    assert is_remote(url)
    known = {option for flag in view.params for option in flag.opts}
    assert {argument.partition("=")[0] for argument in own["args"][:-1]} <= known
    operator = [e["value"] for e in container["env"] if e["name"] == "ASSAY_REWARD_TOKEN_FILE"]
    assert f"--token-file={operator[0]}" in own["args"]
    assert own["image"] == container["image"]
    assert own["securityContext"] == container["securityContext"]
    plain = find(fresh, "Deployment", "reward-server")["spec"]["template"]["spec"]
    assert pod["securityContext"] == plain["securityContext"]
    assert viewer["replicas"] == 1
    policy = find(fresh, "NetworkPolicy", "viewer")["spec"]
    assert policy["ingress"] == []
    asks = find(fresh, "NetworkPolicy", "viewer-asks")["spec"]["ingress"]
    assert asks == [{
        "from": [{"podSelector": policy["podSelector"]}],
        "ports": [{"port": port["containerPort"], "protocol": "TCP"}],
    }]  # fmt: skip


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
def test_a_sandbox_with_sessions(repository: Path, documents: list[dict[str, Any]]) -> None:
    found = built(repository / "deploy" / "kubernetes" / "with-sessions")
    pod = find(found, "Deployment", "sandbox")["spec"]["template"]["spec"]
    container = container_of(find(found, "Deployment", "sandbox"))
    told = {e["name"]: e.get("value") for e in container["env"]}
    # The name is the address, by which a client or a proxy finds the pod.
    assert (
        told["ASSAY_SANDBOX_REPLICA_NAME"] == f"$(POD_IP):{container['ports'][0]['containerPort']}"
    )
    order = list(told)
    assert order.index("POD_IP") < order.index("ASSAY_SANDBOX_REPLICA_NAME")
    assert pod["terminationGracePeriodSeconds"] > int(told["ASSAY_SANDBOX_SESSION_DRAIN_S"]) + 10
    flags = {"ASSAY_SANDBOX_" + name.upper() for one in sandbox_cli.params if (name := one.name)}
    assert set(told) - {"POD_IP"} <= flags
    # As little as without sessions, but for a /proc of its own, with which its users must be.
    plain = find(documents, "Deployment", "sandbox")["spec"]["template"]["spec"]
    assert pod["hostUsers"] is False
    assert pod["securityContext"] == plain["securityContext"]
    own_proc = dict(container["securityContext"])
    assert own_proc.pop("procMount") == "Unmasked"
    assert own_proc == plain["containers"][0]["securityContext"]
    # Reached also while it drains.
    service = find(found, "Service", "sessions")["spec"]
    assert service["publishNotReadyAddresses"] is True
    assert service["selector"] == find(found, "Service", "sandbox")["spec"]["selector"]
    scaler = find(found, "HorizontalPodAutoscaler", "sandbox")["spec"]
    assert scaler["behavior"]["scaleDown"]["selectPolicy"] == "Disabled"


def built(folder: Path) -> list[dict[str, Any]]:
    """What kustomize makes of a folder, held to the schemas."""
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, check=True, text=True
    )
    found = list(yaml.safe_load_all(done.stdout))
    for document in found:
        kubernetes_validate.validate(document, NEWEST, strict=True)
        if document["kind"] != "Namespace":
            assert document["metadata"]["namespace"] == "assay"
    return found


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
def test_kustomize_puts_components_together(repository: Path, tmp_path: Path) -> None:
    root = os.path.relpath(repository / "deploy" / "kubernetes", tmp_path.resolve())
    components = [
        *("genrm", "queue-depth", "genrm-queue-depth", "traces", "traces-of-sandbox", "sessions"),
        "viewer",
    ]
    overlay = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "assay",
        "resources": [f"{root}/base"],
        "components": [f"{root}/{name}" for name in components],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    found = built(tmp_path)
    assert len(found) == 12 + 4 + 1 + 2 + 2 + 1 + 2 + 4
    for name in SERVICES:
        (told,) = container_of(find(found, "Deployment", name))["envFrom"]
        assert find(found, "ConfigMap", told["configMapRef"]["name"])["data"]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not here")
@pytest.mark.parametrize(
    ("folder", "count"),
    [
        *(("base", 12), ("with-genrm", 16), ("with-queue-depth", 13), ("with-traces", 14)),
        *(("with-genrm-queue-depth", 19), ("with-sessions", 14), ("with-viewer", 16)),
    ],
)
def test_kustomize_builds_it(repository: Path, folder: str, count: int) -> None:
    found = built(repository / "deploy" / "kubernetes" / folder)
    assert len(found) == count
    sends = {
        d["metadata"]["name"]
        for d in found
        if d["kind"] == "Deployment" and "envFrom" in container_of(d)
    }
    assert sends == ({"reward-server"} if folder == "with-traces" else set())
    server = container_of(find(found, "Deployment", "reward-server"))
    asks_judges = any(entry["name"] == "ASSAY_REWARD_GENRM_TARGET" for entry in server["env"])
    assert asks_judges == folder.startswith("with-genrm")
    judges = [d for d in found if d["kind"] == "Deployment" and d["metadata"]["name"] == "genrm"]
    shows = [len(container_of(one)["ports"]) for one in judges]
    assert shows == {"with-genrm": [1], "with-genrm-queue-depth": [2]}.get(folder, [])
