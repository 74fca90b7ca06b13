"""FlagEmbedding in a venv of its own: `python -m tests.services.flag_venv` prints where its Python is.

It takes 5 GB, so neither the project's own venv nor whoever does not ask for it has to carry it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.services.environment import service
from tests.services.processes import CACHE, REPOSITORY, only_one, run, say

HOME = CACHE / "flag"
PYTHON = HOME / "venv" / "bin" / "python"
READY = HOME / "ready"
REPORT = Path(__file__).parent / "flag_report.py"
UV = (sys.executable, "-m", "uv")
# PyPI's torch for Linux is the one for CUDA, and is linked to its libraries, so they cannot be left out.
# Triton (1 GB) compiles kernels for GPUs and is only imported by those who do.
OVERRIDES = "triton ; sys_platform == 'never'\n"


def prepare() -> None:
    """Builds it unless it is there and was made for the requirements of today."""
    wanted = json.dumps([sys.version, *requirements()])
    if READY.exists() and READY.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    (HOME / "overrides.txt").write_text(OVERRIDES, encoding="utf-8")
    # The versions that the lock file gives to whoever installs the extra.
    everything = ("--no-dev", "--extra", "flag", "--no-emit-project", "--no-hashes", "--no-annotate", "--no-header")
    run(*UV, "export", "-q", "--frozen", *everything, "-o", HOME / "versions.txt", cwd=REPOSITORY)
    run(*UV, "venv", "-q", "--no-project", "--python", sys.executable, HOME / "venv")
    limits = ("-c", HOME / "versions.txt", "--overrides", HOME / "overrides.txt")
    run(*UV, "pip", "install", "-q", "--python", PYTHON, *limits, *requirements(), "numpy", "tokenizers")
    run(PYTHON, "-c", "import FlagEmbedding")
    READY.write_text(wanted, encoding="utf-8")


def requirements() -> list[str]:
    """Those of the extra `flag`."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["optional-dependencies"]["flag"])


@cache
def report() -> dict[str, Any]:
    """What `flag_report.py` says in that venv; once for all tests, as FlagEmbedding alone takes 30 s to import."""
    python = service("TRIVET_FLAG_PYTHON")
    # A closed port in place of the hub: what is not there must not be looked for on the internet.
    environment = {"PYTHONPATH": str(REPOSITORY), "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_DISABLE_TELEMETRY": "1"}
    done = subprocess.run(
        [python, REPORT], env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    began = time.monotonic()
    with only_one():
        prepare()
    say(f"flag: ready after {time.monotonic() - began:.0f} s")
    print(f"export TRIVET_FLAG_PYTHON={shlex.quote(str(PYTHON))}")


if __name__ == "__main__":
    main()
