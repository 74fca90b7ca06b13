"""Wikitext cleaned in processes of their own: beside the rest of the work, and ended where a page takes too long.

A page's budget is CPU time of the process that cleans it, kept by the kernel: a busy machine fails no page, and C code
cannot look away. A page that is over it, or that the parser cannot take, is read once more by its marks alone, in time
that grows with its length only. Processes start when a wiki proves big enough, or a page so full of marks.
"""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path

from graph.errors import SourceError
from graph.model import FailedPage, Page, PageType, SourceItem
from ingestion.page_types import type_of_article
from ingestion.sanitize import clean_text
from ingestion.wiki_site import WikiSite
from ingestion.wikitext import clean_wikitext

logger = logging.getLogger(__name__)

BUDGET_SECONDS = 1.2
"""CPU time of a page. `ingestion.wikitext` does not parse what it expects to take three quarters of that."""
PLAIN_SECONDS = 0.8
PLAIN_CHARACTERS = 800_000
"""A page read by its marks alone has `PLAIN_SECONDS`, a longer one than this in proportion."""
MAX_PROCESSES = 8
MEMORY_BYTES = 2 * 2**30
"""Address space of a process: a page that wants more is read by its marks alone."""
WORN_BYTES = 160 * 2**20
"""A process that has grown beyond this is replaced: memory that a big page took is seldom given back."""
EASY_CHARACTERS = 20_000
EASY_MARKS = 400
"""A page up to these two cannot take long; it is cleaned where it is read until processes are worth their start."""
WORTH_CHARACTERS = 200_000
"""Of wikitext, about a quarter of a second's work."""
BATCH_CHARACTERS = 60_000
BATCH_PAGES = 32
AHEAD_CHARACTERS = 6_000_000
AHEAD_PAGES = 400
"""Pages begun and not yet taken, at most: the bound that keeps memory flat."""
PATIENCE_SECONDS = 10
"""For a process that has closed its channel to end."""
MARKS = ("{{", "[[", "<", "{|", "\n|", "''")
STATM = Path("/proc/self/statm")
START = "from ingestion.wikitext_worker import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A page as far as it is known without its wikitext. `page.page_type` ARTICLE means: what its shape says."""

    page: Page
    name: str
    """Its title without the namespace."""
    wikitext: str


@dataclass(frozen=True, slots=True)
class _Cleaned:
    """What became of a draft: a page, or the reason why there is none; and what is to be logged."""

    page: Page | None
    reason: str = ""
    notes: tuple[str, ...] = ()


def finished(draft: Draft, site: WikiSite, *, plain: bool = False) -> Page:
    """The page, cleaned in this process. `plain`: by its marks alone."""
    page = draft.page
    cleaned = clean_wikitext(clean_text(draft.wikitext), site, name=page.key, page_name=page.title, plain=plain)
    page_type = page.page_type
    return replace(
        page,
        text=cleaned.text,
        page_type=type_of_article(draft.name, cleaned) if page_type is PageType.ARTICLE else page_type,
        links=tuple(link for link in cleaned.links if link.target != page.title),
        categories=cleaned.categories,
        sections=cleaned.sections,
    )


def finish_pages(
    items: Iterable[Draft | SourceItem], site: WikiSite, *, processes: int = 0, budget: float = BUDGET_SECONDS
) -> Iterator[SourceItem]:
    """All items in their order, drafts as pages. `processes`: at most; 0 takes one for each core.

    What `items` raises is raised here after the pages before it. Close the iterator, or let go of it, to end the
    processes.
    """
    pool = _Pool(site, processes or min(MAX_PROCESSES, _cores()), budget)
    broken: SourceError | None = None
    seen = 0
    try:
        try:
            for item in items:
                if isinstance(item, Draft):
                    seen += len(item.wikitext)
                if isinstance(item, Draft) and not pool.begun and seen <= WORTH_CHARACTERS and _is_easy(item.wikitext):
                    pool.add(_finished_here(item, site))
                else:
                    pool.add(item)
                yield from pool.ready()
        except SourceError as error:
            broken = error  # what came before it is still under way
        yield from pool.rest()
    finally:
        pool.close()
    if broken is not None:
        raise broken


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _is_easy(wikitext: str) -> bool:
    return len(wikitext) <= EASY_CHARACTERS and sum(map(wikitext.count, MARKS)) <= EASY_MARKS


def _finished_here(draft: Draft, site: WikiSite) -> SourceItem:
    cleaned = _attempt(draft, site, plain=False)
    if cleaned.page is None:
        logger.warning("%s: %s; read by its marks alone", draft.page.key, cleaned.reason)
        cleaned = _attempt(draft, site, plain=True)
    return cleaned.page or FailedPage(key=draft.page.key, reason=cleaned.reason)


def _attempt(draft: Draft, site: WikiSite, *, plain: bool) -> _Cleaned:
    try:
        return _Cleaned(finished(draft, site, plain=plain))
    except MemoryError:
        return _Cleaned(None, "it needs too much memory")
    except Exception as error:  # noqa: BLE001 - a page fails alone, and is named
        return _Cleaned(None, f"its wikitext cannot be read ({type(error).__name__}: {error})"[:300])


@dataclass(slots=True, eq=False)
class _Slot:
    """An item's place in the order."""

    draft: Draft | None
    item: SourceItem | None = None
    plain: bool = False

    @property
    def size(self) -> int:
        return len(self.draft.wikitext) if self.draft else 0


@dataclass(slots=True, eq=False)
class _Process:
    channel: Connection
    process: subprocess.Popen[bytes]
    slots: deque[_Slot]
    """What it was given and has not yet answered."""
    ready: bool = False
    """Whether it has said that it is there."""

    def end(self, patience: float = 0.0) -> int:
        """Its exit code. It may end by itself for `patience` seconds."""
        self.channel.close()
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class _Pool:
    """Processes, and the items between reading and taking. One thread uses it; it waits for the processes only when
    too many pages are under way."""

    def __init__(self, site: WikiSite, count: int, budget: float) -> None:
        self.site = site
        self.count = count
        self.budget = budget
        self.begun = False
        """Whether a draft was given to the processes."""
        self.processes: list[_Process] = []
        self.false_starts = 0
        """Processes in a row that ended before they began."""
        self.order: deque[_Slot] = deque()
        self.unsent: deque[_Slot] = deque()
        self.characters = 0
        """Under way, in `order`."""
        self.unsent_characters = 0

    def add(self, item: Draft | SourceItem) -> None:
        if not isinstance(item, Draft):
            self.order.append(_Slot(None, item))
            return
        self.begun = True
        slot = _Slot(item)
        self.order.append(slot)
        self.unsent.append(slot)
        self.characters += slot.size
        self.unsent_characters += slot.size

    def ready(self) -> Iterator[SourceItem]:
        """What can be given on now; waits only when too much is under way."""
        if self.unsent_characters >= BATCH_CHARACTERS or len(self.unsent) >= BATCH_PAGES:
            self._send()
        self._receive(0)
        yield from self._taken()
        while self.characters > AHEAD_CHARACTERS or len(self.order) > AHEAD_PAGES:
            self._send()
            self._receive(None)
            yield from self._taken()

    def rest(self) -> Iterator[SourceItem]:
        while self.order:
            self._send()
            self._receive(None)
            yield from self._taken()

    def close(self) -> None:
        for process in self.processes:
            process.end()
        self.processes.clear()

    def _taken(self) -> Iterator[SourceItem]:
        while self.order and self.order[0].item is not None:
            slot = self.order.popleft()
            self.characters -= slot.size
            assert slot.item is not None
            yield slot.item

    def _send(self) -> None:
        """Give idle processes work. A busy one is never written to: it may itself be waiting to be read."""
        while self.unsent:
            idle = next((process for process in self.processes if not process.slots), None)
            if idle is None and len(self.processes) < self.count:
                idle = self._start()
            if idle is None:
                return
            batch = self._next_batch()
            idle.slots.extend(batch)
            try:
                idle.channel.send([(slot.draft, slot.plain) for slot in batch])
            except OSError:
                self._replace(idle)

    def _next_batch(self) -> list[_Slot]:
        batch = [self.unsent.popleft()]
        size = batch[0].size
        while self.unsent and len(batch) < BATCH_PAGES and size + self.unsent[0].size <= BATCH_CHARACTERS:
            batch.append(self.unsent.popleft())
            size += batch[-1].size
        self.unsent_characters -= size
        return batch

    def _start(self) -> _Process:
        ours, theirs = Pipe()
        # Not forked: this process has threads and models. Not by `multiprocessing`, which would run the command again.
        path = os.pathsep.join(part for part in sys.path if part)
        popen = subprocess.Popen(  # noqa: S603 - our own code, started by our own Python
            [sys.executable, "-P", "-c", START, str(theirs.fileno())],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        process = _Process(ours, popen, deque())
        self.processes.append(process)
        with suppress(OSError):  # where it is gone already, the next word to it tells
            ours.send((self.site, self.budget))
        return process

    def _receive(self, timeout: float | None) -> None:
        """Take what the processes have done. `timeout` None waits for one of them, if any is busy."""
        busy: dict[object, _Process] = {process.channel: process for process in self.processes if process.slots}
        if not busy:
            return
        for channel in wait([process.channel for process in busy.values()], timeout):
            process = busy[channel]
            try:
                while process.slots and process.channel.poll():
                    answer = process.channel.recv()
                    if process.ready:
                        self._settle(process.slots.popleft(), answer)
                    process.ready = True
            except (EOFError, OSError):
                self._replace(process)

    def _settle(self, slot: _Slot, cleaned: _Cleaned) -> None:
        assert slot.draft is not None
        for note in cleaned.notes:
            logger.warning("%s", note)
        if cleaned.page is not None:
            slot.item = cleaned.page
        else:
            self._fail(slot, cleaned.reason)

    def _replace(self, process: _Process) -> None:
        """A process has ended: worn out, or over the page that it was at."""
        self.processes.remove(process)
        code = process.end(PATIENCE_SECONDS)
        self.false_starts = 0 if process.ready else self.false_starts + 1
        if self.false_starts > self.count:
            raise SourceError(
                f"The processes that read wikitext cannot be started (exit code {code}); see what {sys.executable} "
                "says above, or whether the system allows another process."
            )
        left = list(process.slots)
        if left and code != 0 and process.ready:
            over_time = code in (-signal.SIGPROF, -signal.SIGXCPU)
            reason = "it takes too much time" if over_time else f"its reader died (exit code {code})"
            self._fail(left.pop(0), reason)
        self.unsent.extendleft(reversed(left))
        self.unsent_characters += sum(slot.size for slot in left)

    def _fail(self, slot: _Slot, reason: str) -> None:
        assert slot.draft is not None
        if slot.plain:
            slot.item = FailedPage(key=slot.draft.page.key, reason=reason)
            return
        logger.warning("%s: %s; read by its marks alone", slot.draft.page.key, reason)
        slot.plain = True
        self.unsent.appendleft(slot)
        self.unsent_characters += slot.size


class _Notes(logging.Handler):
    """Keeps what is logged, for the process that can write logs."""

    def __init__(self) -> None:
        super().__init__()
        self.held: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.held.append(record.getMessage())

    def take(self) -> tuple[str, ...]:
        held, self.held = tuple(self.held), []
        return held


def main() -> None:
    """A process's life: a site, then batches of drafts until the channel closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to all; the process that started us ends us
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    _, allowed = resource.getrlimit(resource.RLIMIT_AS)
    if allowed == resource.RLIM_INFINITY or allowed > MEMORY_BYTES:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, allowed))
    notes = _Notes()
    logging.getLogger().addHandler(notes)
    channel = Connection(int(sys.argv[1]))
    # Trees of nodes hold nothing in circles, and looking for circles in them takes a third of the time.
    gc.disable()
    try:
        site, budget = channel.recv()
        channel.send("ready")
        while _clean_batch(channel, channel.recv(), site, budget, notes):
            pass
    except (EOFError, OSError):  # whoever started us is gone
        pass


def _clean_batch(
    channel: Connection, batch: Sequence[tuple[Draft, bool]], site: WikiSite, budget: float, notes: _Notes
) -> bool:
    """Answer one by one, so that it is known at which page a process died. Whether the process is good for more."""
    for draft, plain in batch:
        allowed = PLAIN_SECONDS * max(1.0, len(draft.wikitext) / PLAIN_CHARACTERS) if plain else budget
        signal.setitimer(signal.ITIMER_PROF, allowed)
        cleaned = _attempt(draft, site, plain=plain)
        signal.setitimer(signal.ITIMER_PROF, 0)
        channel.send(replace(cleaned, notes=notes.take()))
        if _resident_bytes() > WORN_BYTES:
            gc.collect()
            if _resident_bytes() > WORN_BYTES:
                return False
    return True


def _resident_bytes() -> int:
    """Memory now, where the system says so. (`ru_maxrss` begins with that of the process that started us.)"""
    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0
