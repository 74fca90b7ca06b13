"""The entity graph as types: entities, who names them, and the part of the graph around a question.

Nothing here knows a backend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A thing that pages speak of. Its id is its full normalised name: "mercury planet", "mercury element"."""

    id: str
    name: str
    keys: tuple[str, ...]
    """Normalised names under which it can be met; homonyms share one ("mercury")."""
    titled: bool
    """Whether a page's title or alias stands for it, or only a name found in text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """How often a chunk names an entity."""

    entity_id: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPage:
    """What the graph keeps of one page, replaced as a whole."""

    page_id: str
    title_entity: str = ""
    """Id of the entity the page is about; "" for pages that do not stand for a thing (talk, user, …).
    The entity itself comes by `set_entities`, before or after: until then the edge waits."""
    chunk_ids: tuple[str, ...] = ()
    link_entities: tuple[str, ...] = ()
    """Ids of the entities the page links to, sorted, without repeats; they may not exist (yet): the edge waits."""
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodBounds:
    """How far a question may spread."""

    max_nodes: int = 1_000_000
    max_edges: int = 10_000_000
    milliseconds: float = 2_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The part of the graph around some entities, as arrays; node numbers index `entity_ids` and `chunk_ids`.

    `mention_chunk`, `mention_entity`, `mention_count` (m,): chunk MENTIONS entity. `title_chunk`, `title_entity` (t,):
    the chunk's page is the one about the entity. `link_chunk`, `link_entity` (l,): its page links to the entity.
    `chunk_frequency` (entities,): in how many chunks of the whole wiki the entity is named.
    `chunk_total`: chunks in the whole wiki.
    Both id lists are sorted, so that the same graph gives the same arrays on every backend.
    """

    entity_ids: tuple[str, ...]
    entity_names: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    mention_chunk: NDArray[np.int32]
    mention_entity: NDArray[np.int32]
    mention_count: NDArray[np.float32]
    title_chunk: NDArray[np.int32]
    title_entity: NDArray[np.int32]
    link_chunk: NDArray[np.int32]
    link_entity: NDArray[np.int32]
    chunk_frequency: NDArray[np.int32]
    chunk_total: int
    version: str = ""
    """Changes with the graph; equal versions of a whole graph may share prepared matrices. "" for a part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphCounts:
    """Sizes, for `trivet status` and the report."""

    pages: int
    chunks: int
    entities: int
    mentions: int
    links: int
    categories: int
