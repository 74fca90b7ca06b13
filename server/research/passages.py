"""Pages and facts as passages, the collections these live in, and what the vector store takes of them."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Sequence
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from graph.bm25 import weighed
from graph.model import CHUNK_NAMESPACE, PageType, VectorPoint, embedded_text
from graph.names import fold
from graph.protocols import Embedder, SparseEmbedder
from graph.research import EVERGREEN, Fact, KeptPassage, ResearchPage, Topic
from graph.storable import storable

LONGEST_NAME = 60
"""Characters of a category in a collection's name, as a URL or a folder has them."""
UNPLAIN = re.compile(r"[^\w]+")
HASHED = re.compile(r"-[0-9a-f]{8}$")


def research_collection(category: str) -> str:
    """Where research of that category lives: readable, safe as a folder and in a URL, no other category's.

    >>> research_collection("coast"), research_collection("Küste & Meer")
    ('research_coast', 'research_kuste-meer-fffcaf06')
    """
    return f"research_{_plain(category)}"


def knowledge_collection(category: str) -> str:
    """Where what a person approved of it lives; never `EVERGREEN`."""
    return f"knowledge_{_plain(category, taken=EVERGREEN.removeprefix('knowledge_'))}"


def _plain(category: str, *, taken: str = "") -> str:
    """The category itself where that is plain, else what is left of it and eight digits of its hash.

    What only looks so, as another category's name would, is hashed too.
    """
    kept = UNPLAIN.sub("-", fold(category)).strip("-")[:LONGEST_NAME]
    while len(quote(kept, safe="")) > LONGEST_NAME:
        kept = kept[:-1]
    if kept == category and kept and kept != taken and not HASHED.search(kept):
        return kept
    digest = hashlib.sha1(category.encode(errors="surrogatepass"), usedforsecurity=False).hexdigest()[:8]
    return f"{kept or 'x'}-{digest}"


def passages_of_page(topic: Topic, page: ResearchPage) -> list[KeptPassage]:
    """Empty ones are left out. The id stays the same while the passage does and stands where it stood."""
    collection = research_collection(topic.category)
    return [
        KeptPassage(
            id=_id(collection, topic.slug, page.url, page.title, text, str(ordinal)),
            collection=collection,
            origin="research",
            topic=topic.slug,
            url=page.url,
            title=page.title,
            text=text,
            ordinal=ordinal,
            published=page.published,
            language=page.language,
            category=topic.category,
        )
        for ordinal, text in enumerate(map(storable, page.passages))
        if text.strip()
    ]


def passage_of_fact(fact: Fact) -> KeptPassage:
    """What it answers with once it is approved: its text, under the title of its page."""
    collection = EVERGREEN if fact.evergreen else knowledge_collection(fact.category)
    return KeptPassage(
        id=_id(collection, fact.id, fact.url, fact.title, fact.text),
        collection=collection,
        origin="evergreen" if fact.evergreen else "knowledge",
        topic=fact.topic,
        url=fact.url,
        title=fact.title,
        text=storable(fact.text),
        published=fact.published,
        category=fact.category,
        expires=fact.expires,
    )


def _id(*parts: str) -> str:
    return str(uuid.uuid5(CHUNK_NAMESPACE, storable("\x1f".join(parts))))


async def embedded(passages: Sequence[KeptPassage], embedder: Embedder) -> list[VectorPoint]:
    """Embedded as the wiki's chunks are: title › text. Raises the embedder's `DependencyError`."""
    texts = [embedded_text(passage.title, (), passage.text) for passage in passages]
    weights: Sequence[dict[int, float] | None] = [None] * len(texts)
    if isinstance(embedder, SparseEmbedder):
        vectors, weights = await embedder.embed_passages_both(texts)
    else:
        vectors = await embedder.embed_passages(texts)
    return [point_of(*each) for each in zip(passages, vectors, weights, strict=True)]


def point_of(passage: KeptPassage, dense: NDArray[np.float32], sparse: dict[int, float] | None) -> VectorPoint:
    return VectorPoint(
        chunk_id=passage.id,
        dense=dense,
        text=weighed(embedded_text(passage.title, (), passage.text), passage.title),
        sparse=sparse,
        payload={
            "source": passage.topic,
            "page_id": passage.url,
            "page_type": PageType.ARTICLE.value,
            "language": passage.language,
            "categories": [passage.category],
        },
    )
