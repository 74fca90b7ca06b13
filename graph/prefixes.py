"""What is known of models by their names: what they want before texts, whether they know English only, and
which cosine means nothing."""

from __future__ import annotations

from fnmatch import fnmatchcase

AUTO = "auto"
E5 = "*e5-*"
BGE = "Represent this sentence for searching relevant passages: "
KNOWN = (
    ("*bge-small-en*", BGE, ""),
    ("*bge-base-en*", BGE, ""),
    ("*bge-large-en*", BGE, ""),
    ("*mxbai-embed-large*", BGE, ""),
    ("*snowflake-arctic-embed2*", "query: ", ""),
    ("*snowflake-arctic-embed-*-v2*", "query: ", ""),
    ("*snowflake-arctic-embed*", BGE, ""),
    ("*embeddinggemma*", "task: search result | query: ", "title: none | text: "),
    ("*nomic-embed-text*", "search_query: ", "search_document: "),
    (E5, "query: ", "passage: "),
)
"""Name pattern, before questions, before passages. BGE-M3 and OpenAI's models want nothing."""

ENGLISH_ONLY = (
    "*-en", "*-en-*", "*-en:*", "*_en_*", "mxbai-embed-large*", "all-minilm*", "nomic-embed-text",
    "nomic-embed-text:*", "nomic-embed-text-v1*", "snowflake-arctic-embed", "snowflake-arctic-embed:*",
    "snowflake-arctic-embed-[sml]", "snowflake-arctic-embed-xs", "snowflake-arctic-embed-m-v1*",
    "snowflake-arctic-embed-m-long", "answerai-colbert*", "ms-marco-*",
)  # fmt: skip
"""Name patterns, also of cross-encoders; of nomic's and snowflake's the second version knows other languages too."""


def knows_english_only(model: str) -> bool:
    """False also for models we do not know."""
    name = model.rpartition("/")[2].lower()
    return any(fnmatchcase(name, pattern) for pattern in ENGLISH_ONLY)


def prefixes(model: str, *, question: str, passage: str) -> tuple[str, str]:
    """(before questions, before passages); what is not `AUTO` is taken as it is."""
    name = model.rpartition("/")[2].lower()
    known = next(((q, p) for pattern, q, p in KNOWN if fnmatchcase(name, pattern)), ("", ""))
    return known[0] if question == AUTO else question, known[1] if passage == AUTO else passage


def cosine_of_nothing(model: str) -> float:
    """How like each other two texts are that have nothing to do with each other. E5 was trained at a low temperature,
    so its cosines lie between .7 and 1, as its authors say; BGE's begin about .4."""
    return 0.7 if fnmatchcase(model.rpartition("/")[2].lower(), E5) else 0.4
