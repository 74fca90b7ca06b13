"""Indexing a collection of the embedded engine: in a process of its own, where there is memory for it."""

from __future__ import annotations

import ctypes
import os
import signal

import qdrant_edge as engine
import structlog

from graph.memory_room import free_memory

PR_SET_PDEATHSIG = 1  # from linux/prctl.h
INDEXING_BYTES = 4_000
"""That indexing takes for each point: measured on 141,000 points of 384 numbers and about 85 words, 537 MB."""
log = structlog.get_logger()


def has_memory(name: str, points: int) -> bool:
    """Whether there is room to index so many; else that is left for later, and every vector is compared.

    The system would end the process that asks for more than there is, and an ingestion with it.
    """
    free = free_memory()
    if free is None or free >= points * INDEXING_BYTES:
        return True
    log.warning(
        "not indexed for lack of memory: searches compare every vector until an ingestion finds enough",
        collection=name,
        needed_mb=points * INDEXING_BYTES >> 20,
        free_mb=free >> 20,
    )
    return False


def optimize_folder(data: str) -> None:
    """A process of its own: it yields to the others, and ends with the one that started it or with Ctrl-C."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.nice(10)
    shard = engine.EdgeShard.load(data)
    shard.optimize()
    shard.flush()
    shard.close()
