"""What embedding models want before a question and before a passage, as their model cards say."""

from __future__ import annotations

from fnmatch import fnmatchcase

AUTO = "auto"
BGE = "Represent this sentence for searching relevant passages: "
KNOWN = (
    ("*bge-small-en*", BGE, ""),
    ("*bge-base-en*", BGE, ""),
    ("*bge-large-en*", BGE, ""),
    ("*mxbai-embed-large*", BGE, ""),
    ("*snowflake-arctic-embed*", BGE, ""),
    ("*nomic-embed-text*", "search_query: ", "search_document: "),
    ("*e5-*", "query: ", "passage: "),
)
"""Name pattern, before questions, before passages. BGE-M3 and OpenAI's models want nothing."""


def prefixes(model: str, *, question: str, passage: str) -> tuple[str, str]:
    """(before questions, before passages); what is not `AUTO` is taken as it is."""
    name = model.rpartition("/")[2].lower()
    known = next(((q, p) for pattern, q, p in KNOWN if fnmatchcase(name, pattern)), ("", ""))
    return known[0] if question == AUTO else question, known[1] if passage == AUTO else passage
