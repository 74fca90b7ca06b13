"""How far an ingestion or a research is: a moving line on a terminal, one log line per second elsewhere; on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from ingestion.report import Progress
from server.commands.sentences import sentence
from server.commands.terminal import colours
from server.research.plan import RunProgress

SECONDS_BETWEEN_LINES = 1.0
P = TypeVar("P")


@contextmanager
def ingestion_progress(source: str) -> Iterator[Callable[[Progress], None]]:
    """What `ingest` calls with its progress."""
    console = Console(stderr=True, color_system=colours(), highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        with _moving(console) as show:
            yield show
    else:
        name = sentence(source)
        yield _Lines[Progress](lambda progress: progress.stage, lambda progress: f"{name}: {_line(progress)}")


def _counts(progress: Progress) -> str:
    rate = progress.chunks / progress.seconds if progress.seconds > 0 else 0.0
    return f"{progress.pages:,} pages, {progress.chunks:,} chunks, {rate:,.0f} chunks/s"


def _line(progress: Progress) -> str:
    title = f", at “{sentence(progress.title)}”" if progress.title else ""
    return f"{progress.stage}: {_counts(progress)}{title}"


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


class _Lines(Generic[P]):
    """Log lines, at most one a second, and one wherever it comes to something new."""

    def __init__(self, place: Callable[[P], object], said: Callable[[P], str]) -> None:
        self._place = place
        self._said = said
        self._next = 0.0
        self._at: object = None

    def __call__(self, progress: P) -> None:
        now, at = time.monotonic(), self._place(progress)
        if now < self._next and at == self._at:
            return
        self._next, self._at = now + SECONDS_BETWEEN_LINES, at
        print(self._said(progress), file=sys.stderr, flush=True)


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
        yield _Lines[RunProgress](lambda progress: (progress.topic, progress.stage), _said)


def _said(progress: RunProgress) -> str:
    counts = f": {progress.pages:,} pages, {progress.chunks:,} chunks" if progress.pages or progress.chunks else ""
    detail = f", {sentence(progress.detail)}" if progress.detail else ""
    return f"{progress.topic}: {progress.stage}{counts}{detail}"
