"""What makes a collection in a Qdrant this store's own: its name there, its mark, and how it was made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from graph.errors import StoreVersionError
from graph.storable import storable

FORMAT = 1
MARK = "trivet"
"""The key of our part of a collection's metadata."""
DISTANCE = "Cosine"
LONGEST_NAME = 200
"""Bytes of a collection's name there: Qdrant takes 255, and makes folders with longer names of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCollection:
    """A collection as the server describes it."""

    points: int
    metadata: Mapping[str, Any]
    size: int | None
    distance: str
    modifier: str
    """Of the sparse vectors: "idf", "none", or "missing" where there are no such vectors."""
    indexed: frozenset[str]
    quantized: bool
    on_disk: bool

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> FoundCollection:
        """`said` is what GET /collections/{name} gives."""
        config = said["config"]
        vectors = config["params"].get("vectors") or {}
        # One that is not ours may have a vector without a name: then its settings stand in place of the names.
        dense = {} if "size" in vectors else vectors.get("dense") or {}
        sparse = (config["params"].get("sparse_vectors") or {}).get("sparse")
        return cls(
            points=said.get("points_count") or 0,
            metadata=config.get("metadata") or {},
            size=dense.get("size"),
            distance=dense.get("distance") or "none",
            modifier="missing" if sparse is None else sparse.get("modifier") or "none",
            indexed=frozenset(said.get("payload_schema") or ()),
            quantized=bool(dense.get("quantization_config")),
            on_disk=bool(dense.get("on_disk")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRecipe:
    """What this store's collections are made with, and whose they are."""

    prefix: str
    home: str
    model: str
    """Empty where it is not known; then any will do."""
    dimension: int
    weights: Mapping[str, str | float]
    """How the sparse vectors are made (`SparseEncoder.recipe`)."""
    idf: bool
    quantized: bool
    on_disk: bool

    def name_of(self, collection: str) -> str:
        """Any name as one of letters, digits, `_`, `-` and `~` that is no other's, also as a part of a URL."""
        plain = quote(storable(collection), safe="").replace("~", "%7E").replace(".", "%2E").replace("%", "~")
        name = f"{self.prefix}_{plain}"
        if len(name) <= LONGEST_NAME:
            return name
        digest = hashlib.sha256(name.encode()).hexdigest()[:32]
        return f"{name[: LONGEST_NAME - 34]}~h{digest}"  # no escaped character has an h

    def shape(self, collection: str) -> dict[str, Any]:
        """The body of PUT /collections/{name}."""
        dense = {"size": self.dimension, "distance": DISTANCE, **self.keeping()}
        if not self.quantized:
            del dense["quantization_config"]  # "Disabled" is for changing it
        sparse = {"index": {"on_disk": self.on_disk}, "modifier": "idf" if self.idf else "none"}
        # A persona's passages may also be found by the phrase that triggers them (mission.md §3.2).
        triggers = {"trigger_dense": dense} if collection.startswith("persona") else {}
        return {
            "vectors": {"dense": dense, **triggers},
            "sparse_vectors": {"sparse": sparse},
            "metadata": self._mark(collection),
        }

    def keeping(self) -> dict[str, Any]:
        """How dense vectors are kept, which may be changed later: a `VectorParamsDiff`."""
        small = {"scalar": {"type": "int8", "quantile": 0.99, "always_ram": True}}
        return {
            "on_disk": self.on_disk,
            "hnsw_config": {"on_disk": self.on_disk},
            "quantization_config": small if self.quantized else "Disabled",
        }

    def is_kept_so(self, found: FoundCollection) -> bool:
        return (found.quantized, found.on_disk) == (self.quantized, self.on_disk)

    def _mark(self, collection: str) -> dict[str, Any]:
        return {
            MARK: {
                "format": FORMAT,
                "home": self.home,
                "collection": storable(collection),
                "model": self.model,
                "dimension": self.dimension,
                "bm25": dict(self.weights),
            }
        }

    def is_ours(self, name: str, metadata: Mapping[str, Any]) -> bool:
        """Whether it is this store's, even if it was made otherwise. The name must be what the mark leads to,
        as `wiki_b` begins like a collection of the prefix `wiki` too."""
        mark = _mark_in(metadata)
        return mark.get("home") == self.home and self.name_of(str(mark.get("collection", ""))) == name

    def check(self, name: str, found: FoundCollection, where: str) -> None:
        """Raises `StoreVersionError` unless it can be used. `where` names the server."""
        mark = _mark_in(found.metadata)
        here = f"Collection {name!r} of {where}"
        if not mark:
            raise StoreVersionError(
                f"{here} was not made by Trivet and is left alone; set vectors.qdrant_prefix, now {self.prefix!r}, "
                "to one that nothing else there begins with."
            )
        if mark.get("home") != self.home:
            raise StoreVersionError(
                f"{here} holds the vectors of another wiki's store (id {mark.get('home') or 'none'}, this one's is "
                f"{self.home or 'none'}) and is left alone; set vectors.qdrant_prefix, now {self.prefix!r}, to one of "
                "this store's own."
            )
        if mark.get("format") != FORMAT:
            raise StoreVersionError(
                f"{here} was written by another Trivet (its format is {mark.get('format')}, this one's is {FORMAT}); "
                "use that one, or run `trivet ingest --rebuild`."
            )
        wanted, made = self._wanted(), self._made(found, mark)
        if differing := [key for key in wanted if made.get(key) != wanted[key]]:
            raise StoreVersionError(
                f"{here} was made with {_listed(made, differing)} and the settings ask for "
                f"{_listed(wanted, differing)}; run `trivet ingest --rebuild`, or change the setting back."
            )

    def _wanted(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "dimension": self.dimension,
            "distance": DISTANCE,
            "sparse modifier": "idf" if self.idf else "none",
            **{f"BM25 {key}": value for key, value in self.weights.items()},
        }

    def _made(self, found: FoundCollection, mark: Mapping[str, Any]) -> dict[str, Any]:
        weights = mark.get("bm25")
        return {
            "model": (mark.get("model") or self.model) if self.model else "",
            "dimension": found.size,
            "distance": found.distance,
            "sparse modifier": found.modifier,
            **({f"BM25 {key}": value for key, value in weights.items()} if isinstance(weights, dict) else {}),
        }


def _mark_in(metadata: Mapping[str, Any]) -> dict[str, Any]:
    mark = metadata.get(MARK)
    return mark if isinstance(mark, dict) else {}


def _listed(recipe: Mapping[str, Any], keys: list[str]) -> str:
    return ", ".join(f"{key} {json.dumps(recipe.get(key), ensure_ascii=False)}" for key in keys)
