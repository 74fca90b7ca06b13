"""Pages ready for `StateStore.commit_pages`, from a few words."""

from __future__ import annotations

from dataclasses import replace

from graph.model import Chunk, Manifest, PageType, chunk_id, embedded_text, source_hash

Committed = tuple[Manifest, list[Chunk], dict[str, list[str]]]


def page(key: str, *texts: str, source: str = "wiki", **fields: object) -> Committed:
    """A page whose chunks are these texts; `fields` are the manifest's."""
    page_id, title = f"{source}:{key}", str(fields.pop("title", key))
    chunks = []
    for ordinal, text in enumerate(texts):
        hashed = source_hash(embedded_text(title, (), text))
        chunks.append(
            Chunk(
                id=chunk_id(page_id, hashed, texts[:ordinal].count(text)),
                page_id=page_id,
                ordinal=ordinal,
                start=ordinal * 100,
                end=ordinal * 100 + len(text),
                text=text,
                source_hash=hashed,
            )
        )
    manifest = Manifest(page_id=page_id, source=source, key=key, title=title, chunk_ids=tuple(c.id for c in chunks))
    return replace(manifest, **fields), chunks, {chunk.id: [] for chunk in chunks}  # type: ignore[arg-type]


def redirect(title: str, to: str, source: str = "wiki") -> Committed:
    return page(title, source=source, page_type=PageType.REDIRECT, redirect_to=to)
