"""Made-up requests of every route, against a real server process without a model.

    TRIVET_FUZZED=1400 uv run pytest tests/server/http/test_fuzzed.py

sends a little over 1,000, which takes minutes; CI sends fewer.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.server.cli_runner import Cli
from tests.server.http.clients.environment import run_python

pytestmark = pytest.mark.slow

COUNT = int(os.environ.get("TRIVET_FUZZED", "240"))
SEED = 7


@pytest.fixture
def url(sample_home: Path, tmp_path: Path) -> Iterator[str]:
    """It accepts jobs and does none: a made-up path may be one of this machine."""
    shutil.copytree(sample_home / "home", tmp_path / "home")
    settings = {"TRIVET_SERVER__RUN_JOBS": "false"}
    with Cli(home=tmp_path / "home", folder=tmp_path).start("serve", "--port", "0", environment=settings) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
            _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


def test_no_request_is_a_server_error_and_every_error_has_its_envelope(url: str) -> None:
    libraries = ("schemathesis==4.32.5",)
    found = run_python("fuzzing.py", url, str(COUNT), str(SEED), libraries=libraries, seconds=300 + COUNT)
    assert found["faults"] == []
    assert found["requests"] > COUNT / 2
    assert {"200", "400", "404"} <= found["statuses"].keys()
    assert httpx.get(f"{url}/readyz").json()["status"] == "ready"
