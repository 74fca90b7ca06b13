"""How far an ingestion or a research is: a moving line on a terminal, one log line per second elsewhere; on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from ingestion.report import Progress
from server.commands.sentences import sentence
from server.commands.terminal import colours
from server.research.plan import RunProgress

SECONDS_BETWEEN_LINES = 1.0


@contextmanager
def ingestion_progress(source: str) -> Iterator[Callable[[Progress], None]]:
    """What `ingest` calls with its progress."""
    console = Console(stderr=True, color_system=colours(), highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        with _moving(console) as show:
            yield show
    else:
        yield _Lines(source)


def _counts(progress: Progress) -> str:
    rate = progress.chunks / progress.seconds if progress.seconds > 0 else 0.0
    return f"{progress.pages:,} pages, {progress.chunks:,} chunks, {rate:,.0f} chunks/s"


@contextmanager
def _moving(console: Console) -> Iterator[Callable[[Progress], None]]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[counts]}", markup=False),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None, counts="")
        # A dump is streamed, so nobody knows how many pages are to come: the bar only shows that it lives.
        yield lambda progress: bar.update(task, description=progress.stage, counts=_counts(progress))


class _Lines:
    """Log lines, at most one a second, and one for each new stage."""

    def __init__(self, source: str) -> None:
        self._source = sentence(source)
        self._next = 0.0
        self._stage = ""

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now < self._next and progress.stage == self._stage:
            return
        self._next, self._stage = now + SECONDS_BETWEEN_LINES, progress.stage
        title = f", at “{sentence(progress.title)}”" if progress.title else ""
        print(f"{self._source}: {progress.stage}: {_counts(progress)}{title}", file=sys.stderr, flush=True)


@contextmanager
def research_progress() -> Iterator[Callable[[RunProgress], None]]:
    """What a run of research calls with its progress."""
    console = Console(stderr=True, color_system=colours(), highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
        with RichProgress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("looking at the queue", total=None)
            yield lambda progress: bar.update(task, description=_said(progress))
    else:
        yield _ResearchLines()


def _said(progress: RunProgress) -> str:
    counts = f": {progress.pages:,} pages, {progress.chunks:,} chunks" if progress.pages or progress.chunks else ""
    detail = f", {sentence(progress.detail)}" if progress.detail else ""
    return f"{progress.topic}: {progress.stage}{counts}{detail}"


class _ResearchLines:
    """Log lines, at most one a second, and one for each new stage of each topic."""

    def __init__(self) -> None:
        self._next = 0.0
        self._at = ("", "")

    def __call__(self, progress: RunProgress) -> None:
        now = time.monotonic()
        if now < self._next and (progress.topic, progress.stage) == self._at:
            return
        self._next, self._at = now + SECONDS_BETWEEN_LINES, (progress.topic, progress.stage)
        print(_said(progress), file=sys.stderr, flush=True)
