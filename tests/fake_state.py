"""A working manifest in memory."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from graph.model import EMBEDDED_TYPES, Chunk, Manifest, StoredChunk, embedded_text
from graph.names import words
from graph.redirects import RedirectTarget, follow, title_form


@dataclass
class _Tables:
    """What a failed transaction puts back."""

    manifests: dict[str, Manifest] = field(default_factory=dict)
    chunks: dict[str, Chunk] = field(default_factory=dict)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unlinked: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    changed_keys: set[str] = field(default_factory=set)
    meta: dict[str, str] = field(default_factory=dict)


class FakeState:
    """Every method is one step under one lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._now = _Tables()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._lock:
            before = copy.deepcopy(self._now)
            try:
                yield
            except BaseException:
                self._now = before
                raise

    def manifests(self, page_ids: Sequence[str]) -> Mapping[str, Manifest]:
        with self._lock:
            return {page_id: self._now.manifests[page_id] for page_id in page_ids if page_id in self._now.manifests}

    def all_manifests(self, source: str | None = None) -> Iterator[Manifest]:
        with self._lock:
            stored = sorted(self._now.manifests.items())
        return (manifest for _, manifest in stored if source in (None, manifest.source))

    def begin_batch(self, adding: Sequence[str], removing: Sequence[str]) -> None:
        with self._lock:
            self._now.pending.update(adding, removing)

    def commit_pages(self, pages: Sequence[tuple[Manifest, Sequence[Chunk], Mapping[str, Sequence[str]]]]) -> None:
        with self.transaction():
            for manifest, chunks, names in pages:
                self._drop(manifest.page_id, keep=set(manifest.chunk_ids))
                self._now.manifests[manifest.page_id] = manifest
                self._now.chunks.update({chunk.id: chunk for chunk in chunks if chunk.id in manifest.chunk_ids})
                self._now.names.update({chunk_id: tuple(found) for chunk_id, found in names.items()})
                self._now.unlinked.update(manifest.chunk_ids)
                if missing := set(manifest.chunk_ids) - self._now.chunks.keys():
                    raise ValueError(f"page {manifest.page_id} lists chunks it does not bring: {sorted(missing)}")

    def commit_removal(self, page_ids: Sequence[str]) -> None:
        with self._lock:
            for page_id in page_ids:
                self._drop(page_id, keep=set())
                self._now.manifests.pop(page_id, None)

    def _drop(self, page_id: str, keep: set[str]) -> None:
        old = self._now.manifests.get(page_id)
        for chunk_id in set(old.chunk_ids if old else ()) - keep:
            del self._now.chunks[chunk_id]
            self._now.names.pop(chunk_id, None)
            self._now.unlinked.discard(chunk_id)

    def end_batch(self) -> None:
        with self._lock:
            self._now.pending.clear()

    def unfinished(self) -> set[str]:
        with self._lock:
            return set(self._now.pending)

    def chunks(self, chunk_ids: Sequence[str]) -> Mapping[str, StoredChunk]:
        with self._lock:
            return {chunk_id: self._stored(chunk_id) for chunk_id in chunk_ids if chunk_id in self._now.chunks}

    def _stored(self, chunk_id: str) -> StoredChunk:
        chunk = self._now.chunks[chunk_id]
        page = self._now.manifests[chunk.page_id]
        return StoredChunk(
            chunk=chunk,
            title=page.title,
            url=page.url,
            page_type=page.page_type,
            source=page.source,
            language=page.language,
            modified=page.modified,
            categories=page.categories,
        )

    def neighbours(self, chunk_id: str, distance: int) -> Sequence[Chunk]:
        with self._lock:
            middle = self._now.chunks.get(chunk_id)
            if middle is None:
                return []
            page = [self._now.chunks[other] for other in self._now.manifests[middle.page_id].chunk_ids]
            near = [chunk for chunk in page if abs(chunk.ordinal - middle.ordinal) <= distance]
            return sorted(near, key=lambda chunk: chunk.ordinal)

    def chunk_names(self, chunk_ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        with self._lock:
            return {
                chunk_id: self._now.names.get(chunk_id, ()) for chunk_id in chunk_ids if chunk_id in self._now.chunks
            }

    def live_ids(self) -> set[str]:
        with self._lock:
            return set(self._now.chunks)

    def titles(self) -> Iterator[tuple[str, str, str]]:
        for page in self.all_manifests():
            if page.redirect_to:
                target = self._target(page)
                about = self._now.manifests[target.page_id] if target else page
                if about.page_type in EMBEDDED_TYPES:
                    yield about.page_id, page.title, about.title
            elif page.page_type in EMBEDDED_TYPES:
                for title in dict.fromkeys((page.title, *page.aliases)):
                    yield page.page_id, title, page.title

    def dangling_redirects(self, source: str) -> Sequence[tuple[str, str]]:
        redirects = [page for page in self.all_manifests(source) if page.redirect_to]
        return [(page.title, page.redirect_to) for page in redirects if self._target(page) is None]

    def _target(self, redirect: Manifest) -> RedirectTarget | None:
        return follow(redirect.redirect_to, lambda form: self._find(redirect.source, form))

    def _find(self, source: str, form: str) -> RedirectTarget | None:
        same = [page for page in self.all_manifests(source) if title_form(page.title) == form]
        best = min(same, key=lambda page: (page.redirect_to != "", page.page_id), default=None)
        return RedirectTarget(best.page_id, best.title, best.page_type, best.redirect_to) if best else None

    def add_changed_keys(self, keys: Sequence[str]) -> None:
        with self._lock:
            self._now.changed_keys.update(keys)

    def spread_changed_keys(self) -> int:
        with self._lock:
            phrases = [f" {' '.join(words(key))} " for key in self._now.changed_keys if words(key)]
            marked = {
                chunk_id
                for chunk_id in self._now.chunks.keys() - self._now.unlinked
                if any(phrase in self._text(chunk_id) for phrase in phrases)
            }
            self._now.unlinked |= marked
            self._now.changed_keys.clear()
            return len(marked)

    def _text(self, chunk_id: str) -> str:
        chunk = self._now.chunks[chunk_id]
        title = self._now.manifests[chunk.page_id].title
        return f" {' '.join(words(embedded_text(title, chunk.heading_path, chunk.text)))} "

    def unlink_pages(self, page_ids: Sequence[str]) -> None:
        with self._lock:
            for manifest in self.manifests(page_ids).values():
                self._now.unlinked.update(manifest.chunk_ids)

    def unlinked(self, limit: int) -> Sequence[str]:
        with self._lock:
            return sorted(self._now.unlinked)[:limit]

    def mark_linked(self, chunk_ids: Sequence[str]) -> None:
        with self._lock:
            self._now.unlinked.difference_update(chunk_ids)

    def meta(self, key: str) -> str | None:
        return self._now.meta.get(key)

    def set_meta(self, key: str, value: str) -> None:
        with self._lock:
            self._now.meta[key] = value

    def close(self) -> None: ...
