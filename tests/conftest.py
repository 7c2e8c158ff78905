"""Settings for the whole suite, its tiers, and the stores that it runs against.

Tests are fast unless marked: `slow` takes seconds or whole processes, `external` needs a browser,
node or PostgreSQL. Folders are marked here, single tests where they stand. `make check` runs the
fast ones.

tests/bare runs in an environment of its own: see test_bare_environment.py.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

collect_ignore = ["bare"]
TESTS = Path(__file__).parent
TIERS = {
    "slow": ("compute", "end_to_end", "faults", "golden", "statistical"),
    "external": ("browser",),
}

# Machines are shared: how long an example takes is never a reason to fail.
# On a developer's machine every run looks at new examples; in CI they stay the same.
settings.register_profile("untimed", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole folders, and those that need a PostgreSQL server."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
        for tier, folders in TIERS.items():
            if folder in folders:
                item.add_marker(tier)
        if isinstance(item, pytest.Function) and "postgres_server" in item.fixturenames:
            item.add_marker("external")


@pytest.fixture
def memory_path(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: for tests of processes that are killed, or of power
    loss that is simulated."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[object]:
    """A PostgreSQL server of our own; without the programs, a skip or in CI a failure."""
    from tests import postgres

    if postgres.programs() is None:
        if os.environ.get("CI"):
            pytest.fail(postgres.MISSING)
        pytest.skip(postgres.MISSING)
    server = postgres.Server()
    yield server
    server.remove()


POSTGRES = pytest.param("postgres", marks=pytest.mark.external)


@pytest.fixture(params=["sqlite", POSTGRES, "objects"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store that does not exist yet: of every kind, or with segments elsewhere."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_server")
        server.wipe()
        yield str(server.url)
    elif request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/reports.db"
    else:
        from tests.object_storage import objects_in

        with objects_in(tmp_path / "objects"):
            yield f"sqlite:///{tmp_path}/reports.db?segments=s3://bucket/reports"
