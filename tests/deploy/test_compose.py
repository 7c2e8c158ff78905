"""The compose file and the configuration of its proxy."""

from __future__ import annotations

import re

import pytest

from tests.deploy.files import (
    DEPLOY,
    SLOWEST_STOP_SECONDS,
    documents,
    image_variables,
    settings_of,
)

(COMPOSE,) = documents("compose.yaml")
SERVICES = COMPOSE["services"]
COLLECTOR = SERVICES["collector"]
NGINX = (DEPLOY / "nginx.conf").read_text()


def test_the_collector_gets_settings_that_exist() -> None:
    settings = settings_of(image_variables() | COLLECTOR["environment"])
    database = SERVICES["database"]["environment"]
    url = f"postgresql://{database['POSTGRES_USER']}@database/{database['POSTGRES_DB']}"
    assert settings.store == url
    assert COLLECTOR["environment"]["PGPASSWORD"] == database["POSTGRES_PASSWORD"]
    assert COLLECTOR["ports"] == [f"127.0.0.1:{settings.port}:{settings.port}"]
    mounted = COLLECTOR["volumes"][0].split(":")[1]
    assert all(path.startswith(f"{mounted}/") for path in (*settings.surveys, settings.keys))


def test_the_image_is_built_from_a_file_that_exists() -> None:
    build = COLLECTOR["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).resolve().exists()


@pytest.mark.parametrize("name", ["proxy", "collector"])
def test_nothing_can_be_written_or_gained(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert all(volume.endswith(":ro") for volume in service["volumes"])


@pytest.mark.parametrize("name", SERVICES)
def test_services_restart_and_leave_no_dumps(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert service["ulimits"]["core"] == 0
    assert "no-new-privileges:true" in service["security_opt"]
    assert set(service["networks"]) <= COMPOSE["networks"].keys()
    for waited, condition in service.get("depends_on", {}).items():
        assert waited in SERVICES and condition["condition"] == "service_healthy"


def test_the_database_is_reached_by_the_collector_only() -> None:
    assert COMPOSE["networks"]["inside"]["internal"] is True
    inside = {name for name, service in SERVICES.items() if "inside" in service["networks"]}
    assert inside == {"collector", "database"}
    assert "outside" not in SERVICES["database"]["networks"]
    assert "ports" not in SERVICES["database"]


def test_a_stop_has_time_enough() -> None:
    assert int(COLLECTOR["stop_grace_period"].removesuffix("s")) > SLOWEST_STOP_SECONDS


def test_the_database_does_not_log_uploads() -> None:
    command = SERVICES["database"]["command"]
    assert {"log_statement=none", "log_min_duration_statement=-1"} <= set(command)


def test_the_proxy_keeps_no_address() -> None:
    assert "access_log off;" in NGINX
    assert not re.search(r"^[^#]*(X-Forwarded-For|X-Real-IP|\$remote_addr)", NGINX, re.MULTILINE)


def test_the_proxy_follows_a_collector_that_is_replaced() -> None:
    """It looks up the address of the collector only when it starts."""
    assert SERVICES["proxy"]["depends_on"]["collector"]["restart"] is True


def test_the_proxy_may_start_its_workers_as_another_user() -> None:
    """Without one of these rights nginx does not start; it hands folders below /tmp to them."""
    needed = {"CHOWN", "NET_BIND_SERVICE", "SETGID", "SETUID"}
    assert needed <= set(SERVICES["proxy"]["cap_add"])


def test_the_proxy_reaches_the_collector_and_its_files() -> None:
    settings = settings_of(image_variables() | COLLECTOR["environment"])
    assert re.findall(r"proxy_pass http://(\w+):(\d+);", NGINX) == [
        ("collector", str(settings.port))
    ]
    mounted = {volume.split(":")[1] for volume in SERVICES["proxy"]["volumes"]}
    files = re.findall(r"ssl_certificate(?:_key)? (\S+);", NGINX)
    assert len(files) == 2 and all(file.rpartition("/")[0] in mounted for file in files)
    written = re.findall(r"(?:_temp_path|pid) (\S+);", NGINX)
    assert all(path.startswith("/tmp/") for path in written)
    assert NGINX.count("{") == NGINX.count("}")
