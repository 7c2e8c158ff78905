"""Self-signed certificates for servers in tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write key and certificate of 127.0.0.1; without openssl, a skip or in CI a failure."""
    if shutil.which("openssl") is None:
        missing = "needs openssl: bash .ci/setup installs it"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30",
               "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", "privkey.pem", "-out", "fullchain.pem"]  # fmt: skip
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / "privkey.pem", folder / "fullchain.pem"
