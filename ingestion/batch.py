"""What ingestion carries from reading to writing: pages that differ, what is gone, and what the ledger is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from graph.model import Chunk, FailedPage, Manifest, Page
from graph.protocols import Embedder
from graph.storable import storable
from ingestion.strategies import BLURB, embedded_with


class Ledger(Protocol):
    """Keeps what outlives a run of one source: where its change feed stands, and which pages could not be read."""

    def note(self, *, failed: Sequence[FailedPage], settled: Sequence[str], cursor: str | None) -> None:
        """After each batch, once it is stored. `settled`: keys that were read, skipped or are gone. Blocking."""
        ...


class NoLedger:
    """For a source that is read once."""

    def note(self, *, failed: Sequence[FailedPage], settled: Sequence[str], cursor: str | None) -> None:
        """Forgets it."""


@dataclass(frozen=True, slots=True)
class PreparedPage:
    """A page that differs from what is stored: its manifest to be, its chunks, and which of them are new."""

    page: Page
    manifest: Manifest
    chunks: tuple[Chunk, ...]
    new: tuple[Chunk, ...]
    kept: tuple[str, ...]
    removed: tuple[str, ...]
    stored_before: bool

    def with_blurbs(self, blurbs: Sequence[str], embedder: Embedder) -> PreparedPage:
        """`blurbs`: one for each chunk, "" where there is none; then the page's hash is left out, so that the next
        reading takes it for changed and asks again."""
        chunks = embedded_with(self.page, self.chunks, BLURB, embedder, blurbs)
        hashed = self.manifest.page_hash if all(blurbs) else ""
        old = (*self.kept, *self.removed)
        return prepared_page(self.page, hashed, chunks, old, stored_before=self.stored_before)


def prepared_page(
    page: Page, hashed: str, chunks: tuple[Chunk, ...], old: Sequence[str], *, stored_before: bool
) -> PreparedPage:
    """`old`: ids of the chunks that are stored of it."""
    now = {chunk.id for chunk in chunks}
    return PreparedPage(
        page=page,
        manifest=manifest_of(page, hashed, [chunk.id for chunk in chunks]),
        chunks=chunks,
        new=tuple(chunk for chunk in chunks if chunk.id not in old),
        kept=tuple(chunk_id for chunk_id in old if chunk_id in now),
        removed=tuple(chunk_id for chunk_id in old if chunk_id not in now),
        stored_before=stored_before,
    )


@dataclass(slots=True)
class Batch:
    """What is written together, and what the ledger is told afterwards."""

    pages: dict[str, PreparedPage] = field(default_factory=dict)
    gone: dict[str, None] = field(default_factory=dict)
    """Ids of pages that the feed says are gone; in a feed the last word on a page counts."""
    failed: list[FailedPage] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    cursor: str | None = None

    @property
    def new_chunks(self) -> int:
        return sum(len(page.new) for page in self.pages.values())

    @property
    def empty(self) -> bool:
        return not (self.pages or self.gone or self.failed or self.settled or self.cursor)


def manifests_of(batch: Sequence[PreparedPage]) -> dict[str, Manifest]:
    return {prepared.page.id: prepared.manifest for prepared in batch}


def storable_page(page: Page) -> Page:
    """Without what no store can hold. Our sources see to it themselves; others' may not."""
    post = page.post
    quoted = (post.opening, post.parent) if post else ()
    said = (page.key, page.title, page.text, *page.aliases, *page.categories, *quoted)
    if all(storable(text) == text for text in said):
        return page
    return replace(
        page,
        key=storable(page.key),
        title=storable(page.title),
        text=storable(page.text),
        aliases=tuple(map(storable, page.aliases)),
        categories=tuple(map(storable, page.categories)),
        post=post and replace(post, opening=storable(post.opening), parent=storable(post.parent)),
    )


def page_hash(page: Page, recipe: str) -> str:
    """SHA-1 over all that the source said of a page and how it is processed; equal means nothing to do."""
    said = [
        page.title, page.text, page.url, page.page_type, page.language, page.wiki_language,
        page.redirect_to, page.aliases,
        [(link.target, link.shown) for link in page.links], page.categories,
        [(section.start, section.level, section.title, section.anchor) for section in page.sections], recipe,
    ]  # fmt: skip
    return hashlib.sha1(json.dumps(said).encode(), usedforsecurity=False).hexdigest()


def manifest_of(page: Page, hashed: str, chunk_ids: Sequence[str]) -> Manifest:
    return Manifest(
        page_id=page.id,
        source=page.source,
        key=page.key,
        title=page.title,
        url=page.url,
        page_type=page.page_type,
        language=page.language,
        revision=page.revision,
        modified=page.modified,
        page_hash=hashed,
        redirect_to=page.redirect_to,
        aliases=page.aliases,
        links=page.links,
        categories=page.categories,
        chunk_ids=tuple(chunk_ids),
    )
