"""BM25 as sparse vectors, made by the engine on both sides, so that embedded and server store rank alike."""

from __future__ import annotations

import re

import qdrant_edge as engine

from graph.errors import SettingsError
from graph.names import UNSPACED
from graph.storable import storable

RUN = re.compile(rf"[{UNSPACED}]+")
HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")

K1, B, AVERAGE_LENGTH = 1.2, 0.75, 100.0
"""BM25's usual values; fixed, as they are part of what is stored. The length is counted in words that are no stop
words: passages of encyclopedias have 60 to 90, a full chunk about 110. With the engine's own 256, length would hardly
count."""
TITLE_TIMES = 3
"""How often a title counts beside a word of the text (BM25F with one weight: Robertson, Zaragoza, Taylor, CIKM 2004).

Both were chosen on hotpotqa_pool, where recall@5 goes from .814 to .829 and MRR from .911 to .918; popqa1000 does not
care (.510 and .510).
"""
LANGUAGES = {
    "ar": "arabic", "az": "azerbaijani", "eu": "basque", "bn": "bengali", "ca": "catalan", "zh": "chinese",
    "da": "danish", "nl": "dutch", "en": "english", "fi": "finnish", "fr": "french", "de": "german", "el": "greek",
    "he": "hebrew", "hu": "hungarian", "id": "indonesian", "it": "italian", "ja": "japanese", "kk": "kazakh",
    "ne": "nepali", "no": "norwegian", "pt": "portuguese", "ro": "romanian", "ru": "russian", "sl": "slovene",
    "es": "spanish", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""ISO 639-1 → what the engine calls it: a stemmer and stop words, or stop words alone."""
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
            "tokenizer": "word pairs", "language": self.language, "k1": K1, "b": B, "average_length": AVERAGE_LENGTH,
            "title_times": TITLE_TIMES,
        }  # fmt: skip

    def document(self, text: str, learned: dict[int, float] | None) -> tuple[list[int], list[float]]:
        if self._bm25 is None:
            return _parts(learned)
        vector = self._bm25.embed_document(spaced(storable(text)))
        return vector.indices, vector.values

    def query(self, text: str, learned: dict[int, float] | None) -> tuple[list[int], list[float]]:
        if self._bm25 is None:
            return _parts(learned)
        vector = self._bm25.embed_query(spaced(storable(text)))
        return vector.indices, vector.values


def weighed(text: str, title: str) -> str:
    """`text`, in which the title stands once, with the title as often as it counts."""
    return "\n".join([*[title] * (TITLE_TIMES - 1), text])


def spaced(text: str) -> str:
    """With spaces where a script has none: each two neighbouring characters as a word, and Han characters alone too.

    As Lucene's CJKBigramFilter does with `outputUnigrams`: a name is found inside a longer one, which a dictionary of
    words takes for one word.
    """
    return text if text.isascii() else RUN.sub(lambda run: f" {' '.join(_grams(run[0]))} ", text)


def _grams(run: str) -> list[str]:
    return [run[n : n + 2] for n in range(len(run) - 1)] + [ch for ch in run if len(run) == 1 or HAN.match(ch)]


def _parts(weights: dict[int, float] | None) -> tuple[list[int], list[float]]:
    return list(weights or ()), list((weights or {}).values())


def _bm25(language: str) -> engine.Bm25:
    """The same for documents and questions. The stemmer and the stop words are the language's.

    The engine's multilingual tokenizer would cut Chinese and Japanese into words, but it leaves out every number.
    """
    try:
        return engine.Bm25(
            engine.Bm25Config(
                k=K1,
                b=B,
                avg_len=AVERAGE_LENGTH,
                tokenizer=engine.TokenizerType.Word,
                ascii_folding=True,
                language=language,
            )
        )
    except ValueError as error:
        raise SettingsError(f"The vector store knows no BM25 for {language!r}: {error}.") from error
