"""BM25 as sparse vectors, made by the engine on both sides, so that embedded and server store rank alike."""

from __future__ import annotations

import qdrant_edge as engine

from graph.errors import SettingsError
from graph.storable import storable

K1, B, AVERAGE_LENGTH = 1.2, 0.75, 256.0
"""BM25's usual values, and the engine's; fixed, as they are part of what is stored."""
LEARNED = "learned"
"""In place of a language: the embedder gives the words' weights (BGE-M3), and BM25 is not used."""


class SparseEncoder:
    """Texts, or weights that the embedder gave, to (indices, values); the engine keeps the IDF."""

    def __init__(self, language: str) -> None:
        """`language` names the stemmer and stop words ("english"), or is `LEARNED`. Raises `SettingsError`."""
        self.language = language
        self._bm25 = None if language == LEARNED else _bm25(language)

    @property
    def idf(self) -> bool:
        """Whether the store multiplies by IDF: learned weights have it in them."""
        return self._bm25 is not None

    @property
    def recipe(self) -> dict[str, str | float]:
        """What a store is stamped with: vectors of another recipe cannot be compared."""
        if self._bm25 is None:
            return {"weights": LEARNED}
        return {
            "tokenizer": "multilingual", "language": self.language, "k1": K1, "b": B, "average_length": AVERAGE_LENGTH,
        }  # fmt: skip

    def document(self, text: str, learned: dict[int, float] | None) -> tuple[list[int], list[float]]:
        if self._bm25 is None:
            return _parts(learned)
        vector = self._bm25.embed_document(storable(text))
        return vector.indices, vector.values

    def query(self, text: str, learned: dict[int, float] | None) -> tuple[list[int], list[float]]:
        if self._bm25 is None:
            return _parts(learned)
        vector = self._bm25.embed_query(storable(text))
        return vector.indices, vector.values


def _parts(weights: dict[int, float] | None) -> tuple[list[int], list[float]]:
    return list(weights or ()), list((weights or {}).values())


def _bm25(language: str) -> engine.Bm25:
    """The same for documents and questions. The stemmer and the stop words are the language's; the tokenizer
    also cuts Chinese and Japanese into words."""
    try:
        return engine.Bm25(
            engine.Bm25Config(
                k=K1,
                b=B,
                avg_len=AVERAGE_LENGTH,
                tokenizer=engine.TokenizerType.Multilingual,
                ascii_folding=True,
                language=language,
            )
        )
    except ValueError as error:
        raise SettingsError(f"The vector store knows no BM25 for {language!r}: {error}.") from error
