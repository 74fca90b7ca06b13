"""What sections with evidence of their own are worth beside one broad context for all of them.

    uv run python -m tests.benchmarks.writing --home HOME [--kind research] TOPIC [TOPIC …]

HOME is a store that is filled; pieces are written without a model, so that the same evidence gives the same words.
Prints one JSON line for each topic and one of means:

    sections     that were written; the others say that nothing is known
    documents    cited in the piece, and in the broad variant: every section from the topic's evidence
    tokens       of the evidence in all sections, of both
    jaccard      mean over pairs of sections, of the passages and of the documents each was given
    shared       documents that are in more than one section
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_args

from config.settings import Settings
from server.backends import Backends
from server.focus import Kind
from server.open import open_backends
from server.writing.draft import extracted
from server.writing.gather import Gathered, document_of, gather, patient
from server.writing.model import Piece, SectionResult, WritingRequest
from server.writing.plan import plan_of
from server.writing.run import Run
from server.writing.section import Writer
from server.writing.write import whole_piece


def cited_documents(sections: Iterable[SectionResult]) -> set[str]:
    return {
        document_of(item)
        for section in sections
        for item in section.evidence
        if item.key in {one.key for one in section.citations}
    }


def mean_jaccard(sets: Sequence[set[str]]) -> float:
    pairs = [len(a & b) / len(a | b) for a, b in combinations(sets, 2) if a or b]
    return sum(pairs) / len(pairs) if pairs else 0.0


async def broad_documents(request: WritingRequest, piece: Piece, backends: Backends) -> set[str]:
    """Cited where every section that could be written is written from what is found for the topic alone."""
    backends = patient(backends)
    plan = plan_of(request.topic, request, backends.settings.writing, piece.language)
    persona = backends.persona("")
    writer = Writer(
        request=request, topic=request.topic, headings=(), persona=persona, language="", backends=backends, owners={}
    )
    found: Gathered = await gather(plan[0], request, backends)
    places = Run(writer=writer, plan=plan, results={}).broad_places(found)
    evidence = [replace(found.evidence[place], number=n) for n, place in enumerate(places, 1)]
    documents: set[str] = set()
    said: set[str] = set()
    for section in plan:
        draft = await extracted(section.queries[-1], evidence, backends, said=said)
        said.update(draft.sentences)
        keys = {one.key for one in draft.citations}
        documents |= {document_of(item) for item in evidence if item.key in keys}
    return documents


async def measure(topic: str, kind: Kind, backends: Backends) -> dict[str, Any]:
    request = WritingRequest(topic=topic, kind=kind, use_web=False)
    begun = time.perf_counter()
    piece = await whole_piece(request, backends)
    seconds = time.perf_counter() - begun
    written = [section for section in piece.sections if section.evidence]
    documents = [{document_of(item) for item in section.evidence} for section in written]
    counted = Counter(document for own in documents for document in own)
    return {
        "topic": topic,
        "sections": len(written),
        "documents": len(cited_documents(written)),
        "documents_broad": len(await broad_documents(request, piece, backends)),
        "tokens": piece.tokens.focused,
        "tokens_broad": piece.tokens.broad,
        "jaccard_passages": round(mean_jaccard([{item.key for item in s.evidence} for s in written]), 3),
        "jaccard_documents": round(mean_jaccard(documents), 3),
        "shared": sum(count > 1 for count in counted.values()),
        "confidence": [section.confidence for section in written],
        "seconds": round(seconds, 1),
    }


def means(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Ratios of sums, so that a topic of which little is known counts for little."""
    total = {
        name: sum(row[name] for row in rows) for name in ("documents", "documents_broad", "tokens", "tokens_broad")
    }
    return {
        "topics": len(rows),
        "documents_by_broad": round(total["documents"] / max(1, total["documents_broad"]), 2),
        "tokens_by_broad": round(total["tokens"] / max(1, total["tokens_broad"]), 2),
        "jaccard_passages": round(sum(row["jaccard_passages"] for row in rows) / len(rows), 3),
        "jaccard_documents": round(sum(row["jaccard_documents"] for row in rows) / len(rows), 3),
    }


async def run(options: argparse.Namespace) -> None:
    backends = await open_backends(Settings(home=options.home), command="benchmark")
    try:
        rows = []
        for topic in options.topics:
            rows.append(await measure(topic, options.kind, backends))
            print(json.dumps(rows[-1]), flush=True)
        print(json.dumps(means(rows)))
    finally:
        await backends.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--kind", choices=get_args(Kind), default="research")
    parser.add_argument("topics", nargs="+")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
