"""Reading a source in a thread of its own, a few pages ahead of the work."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Callable, Iterator

from graph.feed import FeedItem

GROUP = 16
"""Items handed over at once."""
AHEAD = 4
"""Groups read ahead at most: the bound that keeps memory flat."""


async def read_in_thread(begin: Callable[[], Iterator[FeedItem]], name: str) -> AsyncIterator[list[FeedItem]]:
    """Groups of the items of what `begin` gives. What it raises is raised here, after the items before it."""
    groups: queue.Queue[list[FeedItem] | BaseException | None] = queue.Queue(AHEAD)
    stopped = threading.Event()

    def put(item: list[FeedItem] | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                groups.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def read() -> None:
        group: list[FeedItem] = []
        try:
            for item in begin():
                group.append(item)
                if len(group) >= GROUP:
                    put(group)
                    group = []
                if stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - handed to the reader, who raises it
            put(group)
            put(error)
            return
        put(group)
        put(None)

    thread = threading.Thread(target=read, name=f"read {name}", daemon=True)
    thread.start()
    try:
        while (received := await asyncio.to_thread(groups.get)) is not None:
            if isinstance(received, BaseException):
                raise received
            if received:
                yield received
    finally:
        stopped.set()
