"""What is embedded with a chunk's own text (mission.md §1.6): one of five strategies for a whole store.

The same chunks are made with each, so what a strategy adds never moves a boundary: it has the room that the embedder's
window leaves beside title, headings and text, and is cut to it. Equal embedded texts have equal chunk ids, so that
another strategy embeds again only what it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from graph.model import BARE, TITLE, Chunk, Page, chunk_id, embedded_text, source_hash, text_of
from graph.protocols import Embedder

OPENING, PARENT, BLURB = "title+op", "title+op+parent", "llm-blurb"
"""With the beginning of the topic's first post; of the post answered as well; with a sentence that a model wrote."""
ROOMS = (400, 300, 200, 100, 50)
"""Characters for each text that is put before a chunk; the first number that fits the embedder's window is taken."""

Said = dict[tuple[tuple[str, ...], str], str]
"""Heading path and text of a chunk → the sentence a model wrote of it."""


def strategy_for(page: Page, chosen: str) -> str:
    """What the chosen strategy comes to for this page: outside of a thread there is nothing to quote."""
    return TITLE if chosen in (OPENING, PARENT) and not quoted(page, chosen) else chosen


def quoted(page: Page, strategy: str) -> tuple[str, ...]:
    """What a post quotes of its topic."""
    if page.post is None or strategy not in (OPENING, PARENT):
        return ()
    wanted = (page.post.opening, page.post.parent if strategy == PARENT else "")
    return tuple(text for text in wanted if text)


def recipe_of(page: Page, recipe: str, chosen: str) -> str:
    """`recipe`, with what the strategy adds to this page's text. With the default nothing is added, so what was stored
    before there was a choice stays as it is."""
    strategy = strategy_for(page, chosen)
    return recipe if strategy == TITLE else "\x1f".join((recipe, strategy, *quoted(page, strategy)))


def embedded_with(
    page: Page, chunks: Sequence[Chunk], strategy: str, embedder: Embedder, blurbs: Sequence[str] = ()
) -> tuple[Chunk, ...]:
    """The page's chunks as this strategy embeds them, of which their ids are made. `blurbs`: one for each chunk."""
    if strategy == TITLE:
        return tuple(chunks)
    quotes = tuple(f"> {text}" for text in quoted(page, strategy))
    made: list[Chunk] = []
    seen: Counter[str] = Counter()
    for number, chunk in enumerate(chunks):
        before = (blurbs[number],) if strategy == BLURB else quotes
        context = "" if strategy == BARE else _fitting(before, chunk, page.title, embedder)
        chunk = replace(chunk, strategy=strategy if context or strategy == BARE else TITLE, context=context)
        hashed = source_hash(text_of(chunk, page.title))
        made.append(replace(chunk, source_hash=hashed, id=chunk_id(page.id, hashed, seen[hashed])))
        seen[hashed] += 1
    return tuple(made)


def known_blurbs(chunks: Iterable[Chunk]) -> dict[str, Said]:
    """What the model said of stored chunks, by page id."""
    known: dict[str, Said] = {}
    for chunk in chunks:
        if chunk.strategy == BLURB:
            known.setdefault(chunk.page_id, {})[chunk.heading_path, chunk.text] = chunk.context
    return known


def _fitting(texts: Sequence[str], chunk: Chunk, title: str, embedder: Embedder) -> str:
    """As much of each text as fits into the embedder's window before the chunk; "" where nothing does."""
    for room in ROOMS:
        context = "\n\n".join(_cut(text, room) for text in texts if text)
        whole = embedded_text(title, chunk.heading_path, chunk.text, context=context)
        if embedder.count_tokens(whole) <= embedder.max_tokens:
            return context
    return ""


def _cut(text: str, room: int) -> str:
    """Whole words, as far as there are any."""
    if len(text) <= room:
        return text
    words = text[:room].rsplit(" ", 1)[0].rstrip(" …")
    return f"{words}…"
