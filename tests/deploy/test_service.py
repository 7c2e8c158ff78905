"""The unit for systemd and the settings that it names."""

from __future__ import annotations

import configparser
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from deniable.cli.collector_commands import serve
from deniable.collector.server import MAX_FILES
from deniable.collector.settings import Settings
from tests.deploy.files import DEPLOY, SLOWEST_STOP_SECONDS

UNIT = DEPLOY / "deniable.service"
MAX_EXPOSURE = 20
"""Largest exposure that `systemd-analyze security` may find, in tenths: 2.0 of 10."""


def service() -> dict[str, str]:
    """Return the section [Service]; of repeated keys the last one."""
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNIT.read_text())
    assert parser.sections() == ["Unit", "Service", "Install"]
    return dict(parser["Service"])


def test_it_runs_a_command_that_exists(tmp_path: Path) -> None:
    program, name, *arguments = shlex.split(service()["ExecStart"])
    assert Path(program).name == "deniable"
    config = tmp_path / "collector.toml"
    config.write_text((DEPLOY / "collector.toml").read_text())
    arguments = [str(config) if text.endswith(config.name) else text for text in arguments]
    assert name == serve.name
    with serve.make_context(name, arguments) as context:
        assert context.params["config"] == config


def test_its_settings_are_valid_and_lie_where_it_may_write() -> None:
    settings = Settings.load({}, {}, DEPLOY / "collector.toml")
    assert settings.surveys and settings.keys
    folder = Path("/var/lib") / service()["StateDirectory"]
    assert Path(settings.store.removeprefix("sqlite:///")).parent == folder
    assert settings.host == "127.0.0.1"


def test_it_has_rights_and_time_enough_and_no_more() -> None:
    keys = service()
    assert int(keys["LimitNOFILE"]) >= MAX_FILES
    assert int(keys["TimeoutStopSec"]) > SLOWEST_STOP_SECONDS
    assert keys["LimitCORE"] == "0"
    assert keys["CapabilityBoundingSet"] == ""
    assert keys["SystemCallErrorNumber"] == "EPERM", "a refused call would kill the collector"


@pytest.mark.slow
def test_systemd_accepts_it(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is missing: it is part of systemd")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/deniable/bin/deniable", sys.executable))
    for command in (
        ["verify", str(unit)],
        ["security", "--offline=yes", f"--threshold={MAX_EXPOSURE}", str(unit)],
    ):
        done = subprocess.run(["systemd-analyze", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        assert UNIT.name not in done.stderr, done.stderr
