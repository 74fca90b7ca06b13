"""What all tests share."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import hypothesis
import pytest

from tests.server.cli_runner import ROOT, Cli

# A shell that starts the tests in the background has Ctrl-C ignored, which every process below inherits.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A deadline measures the machine, not the code: what must be quick has a benchmark or a budget of its own.
hypothesis.settings.register_profile("trivet", deadline=None)
hypothesis.settings.load_profile("trivet")

DEFAULT_DATA = Path(__file__).parents[1] / "../shared/data"


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The shared data folder; a test that asks for it is skipped where there is none."""
    folder = Path(os.environ.get("TRIVET_DATA", DEFAULT_DATA)).resolve()
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}; set TRIVET_DATA")
    return folder


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sample wiki in `wiki` and a store filled with it in `home`; not to be changed."""
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(ROOT / "ingestion" / "sample_wiki", folder / "wiki")
    ended = Cli(home=folder / "home", folder=folder).process("ingest", "wiki", "--name", "hollin")
    assert ended.code == 0, ended.err
    return folder
