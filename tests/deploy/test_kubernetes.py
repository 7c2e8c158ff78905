"""The example for Kubernetes."""

from __future__ import annotations

from typing import Any

from deniable.collector.settings import MIB, Settings
from deniable.version import __version__
from tests.deploy.files import (
    SLOWEST_STOP_SECONDS,
    documents,
    has_route,
    image_variables,
    only,
    settings_of,
    stages,
)

DEPLOYMENT, SERVICE, BUDGET = documents("kubernetes.yaml")
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]


def test_kinds() -> None:
    kinds = [document["kind"] for document in (DEPLOYMENT, SERVICE, BUDGET)]
    assert kinds == ["Deployment", "Service", "PodDisruptionBudget"]
    assert BUDGET["spec"]["minAvailable"] < DEPLOYMENT["spec"]["replicas"]


def test_selectors_find_the_collectors() -> None:
    labels = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"] == labels
    assert SERVICE["spec"]["selector"] == labels
    assert SERVICE["spec"]["type"] == "ClusterIP", "only an ingress reaches it"
    assert BUDGET["spec"]["selector"]["matchLabels"] == labels


def test_probes_ask_routes_that_exist() -> None:
    paths = {
        name: CONTAINER[f"{name}Probe"]["httpGet"]["path"]
        for name in ("liveness", "readiness", "startup")
    }
    assert paths == {"liveness": "/healthz", "readiness": "/readyz", "startup": "/healthz"}
    assert all(map(has_route, paths.values()))
    (port,) = CONTAINER["ports"]
    named = [CONTAINER[f"{name}Probe"]["httpGet"]["port"] for name in paths]
    assert {*named, SERVICE["spec"]["ports"][0]["targetPort"]} == {port["name"]}
    assert port["containerPort"] == settings_of(image_variables()).port


def test_variables_are_settings_and_their_files_are_mounted() -> None:
    values = {item["name"]: item.get("value", "") for item in CONTAINER["env"]}
    assert {"DENIABLE_STORE", "DENIABLE_SURVEYS"} <= values.keys()
    settings = settings_of(image_variables() | values)
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in POD["volumes"]}
    for file in (*settings.surveys, settings.keys):
        assert file.rpartition("/")[0] in mounts.values()


def test_a_service_cannot_change_settings() -> None:
    """For a service named deniable, Kubernetes would set DENIABLE_PORT to tcp://10.0.0.1:80."""
    assert POD["enableServiceLinks"] is False


def test_it_runs_without_rights() -> None:
    user, group = only(stages()[-1], "USER").split(":")
    context = POD["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (int(user), int(group))
    assert context["runAsNonRoot"] is True
    inner = CONTAINER["securityContext"]
    assert inner["readOnlyRootFilesystem"] is True
    assert inner["allowPrivilegeEscalation"] is False
    assert inner["capabilities"] == {"drop": ["ALL"]}


def test_time_and_memory_suffice() -> None:
    pause = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    assert POD["terminationGracePeriodSeconds"] > pause + SLOWEST_STOP_SECONDS
    limit = int(CONTAINER["resources"]["limits"]["memory"].removesuffix("Mi")) * MIB
    assert limit > 100 * MIB + Settings().max_memory


def test_the_image_is_that_of_this_version() -> None:
    assert CONTAINER["image"] == f"deniable:{__version__}"
