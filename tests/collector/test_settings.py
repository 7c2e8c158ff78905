"""Test settings: precedence of flags, environment and file, and errors."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from deniable.cli.app import app
from deniable.client.outbox import RETRY_PERIOD
from deniable.collector.settings import ENVIRONMENT_PREFIX, Settings
from deniable.errors import InputError

ROOT = Path(__file__).parents[2]


def test_the_order_of_precedence(tmp_path: Path) -> None:
    file = tmp_path / "collector.toml"
    file.write_text('port = 1\nhost = "a"\ngroup = 3\nbody_time = 2\nsurveys = ["x.json"]\n')
    environment = {"DENIABLE_PORT": "2", "DENIABLE_HOST": "b", "DENIABLE_REQUIRE_KEY": "yes",
                   "DENIABLE_KEYS": "k", "OTHER": "x"}  # fmt: skip
    got = Settings.load({"port": 5}, environment, file)
    assert (got.port, got.host, got.group, got.body_time) == (5, "b", 3, 2.0)
    assert got.surveys == ("x.json",)
    assert got.require_key is True
    assert got.max_body == Settings().max_body
    listed = Settings.load({}, {"DENIABLE_SURVEYS": "a.json b.json"})
    assert listed.surveys == ("a.json", "b.json")


@pytest.mark.parametrize(
    ("flags", "environment", "text", "says"),
    [
        ({}, {}, "max_bdy = 1", 'Did you mean "max_body"'),
        ({}, {}, "nothing_like_it = 1", "Settings: store"),
        ({}, {}, "port = '80'", "port: expected a whole number, got '80'"),
        ({}, {}, "port = true", "expected a whole number, got True"),
        ({}, {}, "surveys = 'a'", "a list of strings"),
        ({}, {}, "port = ", "is not valid TOML"),
        ({}, {}, "[collector]\nport = 80", r"at the top level of the file: remove \[collector\]"),
        ({}, {"DENIABLE_PORT": "many"}, "", "DENIABLE_PORT: expected a whole number, got 'many'"),
        ({}, {"DENIABLE_REQUIRE_KEY": "perhaps"}, "", "expected yes or no"),
        ({"port": 0}, {}, "", "port to be 1 or more, got 0"),
        ({"port": 80_000}, {}, "", "port to be at most 65535, got 80000"),
        ({"body_time": math.nan}, {}, "", "body_time to be 0.1 or more, got nan"),
        ({"header_time": 1e30}, {}, "", "header_time to be at most"),
        ({"keep_days": 10**9}, {}, "", "keep_days to be at most 36500"),
        ({"log_format": "yaml"}, {}, "", "log_format must be text or json; got 'yaml'"),
        ({}, {"DENIABLE_MAX_BDY": "1"}, "", 'MAX_BDY is not a setting. Did you mean "DENIABLE_MAX'),
        ({"max_body": 100, "max_memory": 150}, {}, "", "at least two bodies"),
        ({"require_key": True}, {}, "", "require_key needs keys"),
        (
            {},
            {},
            "key_days = 6",
            "key_days must be at least 7, not 6: clients retry an upload for 6",
        ),
        ({"compact": 0, "keep_days": 30}, {}, "", "keep_days needs compact above 0: old reports"),
    ],
)
def test_mistakes(
    flags: dict[str, Any], environment: dict[str, str], text: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(InputError, match=says):
        Settings.load(flags, environment, tmp_path / "c.toml")


def test_keys_are_kept_as_long_as_clients_retry() -> None:
    # A clock that is a day ahead goes unnoticed.
    days = math.ceil(RETRY_PERIOD / 86400) + 1
    assert Settings(key_days=days).key_days == days
    with pytest.raises(InputError, match="counted twice"):
        Settings(key_days=days - 1)


def test_every_setting_has_a_flag_and_stands_in_the_documentation() -> None:
    shown = CliRunner().invoke(app, ["serve", "--help"]).output
    page = (ROOT / "docs" / "how-to" / "collector.md").read_text()
    for item in fields(Settings):
        if item.name != "surveys":
            assert f"--{item.name.replace('_', '-')} " in shown
        assert f"| `{item.name}` |" in page, f"docs/how-to/collector.md does not list {item.name}"
    assert ENVIRONMENT_PREFIX in page


def test_serve_needs_a_survey_and_a_store(tmp_path: Path) -> None:
    def run(*args: str) -> str:
        got = CliRunner().invoke(app, ["serve", *args])
        assert got.exit_code == 1
        return got.output

    assert "at least one survey" in run()
    survey = ROOT / "examples" / "survey.toml"
    assert "there is no store" in run(str(survey))
