"""What `trivet verify` says of passages that are kept beside the wiki."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from ingestion.verify import SHOWN, Disagreement, VerifyReport
from server.research.shelf import KeptFaults, Shelf

KINDS = {
    "missing": "kept passages without a vector",
    "orphaned": "vectors of passages that are not kept",
    "unfinished": "kept passages of a write that was cut short",
}


async def with_kept(report: VerifyReport, shelf: Shelf | None, *, mend: bool = False) -> VerifyReport:
    """The report, and how far the research store and its collections agree; after a repair where `mend` says so."""
    if shelf is None:
        return report
    if mend:
        await shelf.repair()
    faults = await shelf.faults()
    store = shelf.store
    kept = await asyncio.to_thread(lambda: sum(len(store.ids(name)) for name in store.every_collection()))
    return replace(report, disagreements=(*report.disagreements, *_disagreements(faults)), kept=kept)


def _disagreements(faults: KeptFaults) -> list[Disagreement]:
    found = []
    for kind, text in KINDS.items():
        by_collection: Mapping[str, frozenset[str]] = getattr(faults, kind)
        ids = sorted(f"{collection}/{key}" for collection, keys in by_collection.items() for key in keys)
        if ids:
            found.append(Disagreement(kind=text, count=len(ids), examples=tuple(ids[:SHOWN])))
    return found
