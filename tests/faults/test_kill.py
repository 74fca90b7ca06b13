"""kill −9 in the middle of an ingestion: the next run goes on, and everything agrees (mission.md §1.8).

Real stores; a constant embedder, so that the time goes where the writes are.
"""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from config.settings import Settings
from graph.knowledge import WIKI, Knowledge
from graph.recognizer import Recognizer
from ingestion.ingest import ingest
from ingestion.verify import verify
from server.open import open_backends
from tests.fakes import HashEmbedder
from tests.ingestion.small_wiki import SETTINGS, ListSource, page

PAGES = 120
WRITER = """
import asyncio, pathlib, sys
from tests.faults.test_kill import run
asyncio.run(run(pathlib.Path(sys.argv[1]), int(sys.argv[2])))
"""


WIDTH = 384
"""Of the bundled model, whose store is filled."""


def wiki(edition: int) -> ListSource:
    """Every third page is edited from one edition to the next, and one in ten is gone."""
    pages = [
        page(
            f"Lamp {n}",
            f"## Story\n\nLamp {n} hangs beside Lamp {(n * 7) % PAGES}. Edition {edition if n % 3 == 0 else 0}.",
        )
        for n in range(PAGES)
        if edition == 0 or n % 10
    ]
    return ListSource(pages)


async def knowledge_in(home: Path) -> tuple[Knowledge, object]:
    backends = await open_backends(Settings(home=home), command="kill test")
    return replace(backends.knowledge, embedder=HashEmbedder(WIDTH), recognizer=Recognizer(())), backends


async def run(home: Path, edition: int) -> None:
    """One ingestion, as the killed process does it."""
    knowledge, backends = await knowledge_in(home)
    print("open", flush=True)
    await ingest(wiki(edition), knowledge, SETTINGS, prune=edition > 0)
    await backends.close()  # type: ignore[attr-defined]


def killed(home: Path, edition: int, after: float) -> int:
    """Start an ingestion and kill it `after` seconds after its store is open; its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home), str(edition)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return process.returncode


@pytest.mark.slow
def test_killed_at_random_points_the_next_run_converges(tmp_path: Path) -> None:
    chance = random.Random(7)
    codes = [killed(tmp_path, edition, chance.uniform(0, 1.5)) for edition in (0, 0, 1, 1)]
    assert -signal.SIGKILL in codes

    async def converge() -> None:
        knowledge, backends = await knowledge_in(tmp_path)
        await ingest(wiki(1), knowledge, SETTINGS, prune=True)
        report = await verify(knowledge)
        assert report.disagreements == ()
        assert report.pages == len(wiki(1).items)
        assert await knowledge.vectors.ids(WIKI) == knowledge.state.live_ids()
        again = await ingest(wiki(1), knowledge, SETTINGS, prune=True)
        assert (again.unchanged, again.chunks, again.linked) == (report.pages, 0, 0)
        await backends.close()  # type: ignore[attr-defined]

    asyncio.run(converge())
