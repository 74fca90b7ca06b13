"""What a piece about a topic is asked to say, section by section, for each kind of piece (mission.md §7.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

Kind = Literal["research", "analysis", "explanation"]
KINDS: tuple[Kind, ...] = get_args(Kind)
FOCUS_LISTS: Mapping[Kind, tuple[str, ...]] = {
    "research": ("foundations", "formalism", "evidence", "applications", "frontiers"),
    "analysis": ("overview", "strengths", "weaknesses", "comparison", "implications"),
    "explanation": ("overview", "process", "pitfalls", "advanced", "examples"),
}
FORMAL = "formalism"
"""Definitions and formulas need more context than the rest."""
WORDS: Mapping[str, Mapping[str, str]] = {
    "fr": {
        "foundations": "fondements",
        "formalism": "formalisme",
        "evidence": "preuves",
        "applications": "applications",
        "frontiers": "questions ouvertes",
        "overview": "vue d'ensemble",
        "strengths": "forces",
        "weaknesses": "faiblesses",
        "comparison": "comparaison",
        "implications": "conséquences",
        "process": "déroulement",
        "pitfalls": "pièges",
        "advanced": "pour aller plus loin",
        "examples": "exemples",
    },
    "de": {
        "foundations": "Grundlagen",
        "formalism": "Formalismus",
        "evidence": "Belege",
        "applications": "Anwendungen",
        "frontiers": "offene Fragen",
        "overview": "Überblick",
        "strengths": "Stärken",
        "weaknesses": "Schwächen",
        "comparison": "Vergleich",
        "implications": "Folgen",
        "process": "Ablauf",
        "pitfalls": "Fallstricke",
        "advanced": "Vertiefung",
        "examples": "Beispiele",
    },
}
"""Language → focus → what it is called there; English is the focus itself."""


def focus_words(focus: str, language: str) -> str:
    """What to search with the question for it, in its language where that is known here, else in English."""
    return WORDS.get(language, {}).get(focus, focus)
