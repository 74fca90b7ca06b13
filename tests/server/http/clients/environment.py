"""Runs a program with libraries that are fetched for it alone: they are not the product's, and need not suit those."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SECONDS = 120


def run_python(program: str, *arguments: str, libraries: tuple[str, ...], seconds: float = SECONDS) -> Any:
    """What it prints, as JSON. The test is skipped where the libraries cannot be fetched."""
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not installed, which fetches the client's libraries")
    wanted = [part for library in libraries for part in ("--with", library)]
    command = [
        uv,
        "run",
        "--quiet",
        "--no-project",
        "--isolated",
        "--system-certs",
        "--python",
        sys.executable,
        *wanted,
    ]
    _skip_unless(_run([*command, "python", "-c", ""]), libraries)
    return _printed(_run([*command, "python", str(HERE / program), *arguments], seconds))


def run_node(program: str, *arguments: str, libraries: tuple[str, ...]) -> Any:
    """The same with npm, whose libraries are kept between runs."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    folder = _cache() / "-".join(library.replace("/", "_") for library in libraries)
    if not (folder / "node_modules").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as fresh:
            options = ["--no-audit", "--no-fund", "--ignore-scripts", "--prefix", fresh]
            _skip_unless(_run([npm, "install", *options, *libraries]), libraries)
            (Path(fresh) / "node_modules").rename(folder / "node_modules")
    # node looks for libraries beside the program.
    copied = shutil.copy(HERE / program, folder / program)
    return _printed(_run([node, str(copied), *arguments]))


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "trivet" / "clients"


def _run(command: list[str], seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
    # The registries' proxies and certificates stand in the environment; the server is on this machine.
    environment = os.environ | {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    try:
        return subprocess.run(
            command, capture_output=True, check=False, encoding="utf-8", env=environment, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


def _skip_unless(installed: subprocess.CompletedProcess[str], libraries: tuple[str, ...]) -> None:
    if installed.returncode:
        pytest.skip(f"{', '.join(libraries)} cannot be fetched here: {installed.stderr.strip()[-300:]}")


def _printed(ended: subprocess.CompletedProcess[str]) -> Any:
    assert ended.returncode == 0, ended.stderr[-3000:]
    return json.loads(ended.stdout)
