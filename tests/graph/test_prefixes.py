"""What is put before texts for models that want it."""

from __future__ import annotations

import pytest

from graph.prefixes import AUTO, BGE, cosine_of_nothing, knows_english_only, prefixes


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("bge-small-en-v1.5", (BGE, "")),
        ("BAAI/bge-large-en-v1.5", (BGE, "")),
        ("BAAI/bge-m3", ("", "")),
        ("nomic-embed-text:latest", ("search_query: ", "search_document: ")),
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        ("mxbai-embed-large:335m", (BGE, "")),
        ("snowflake-arctic-embed:22m", (BGE, "")),
        ("snowflake-arctic-embed2", ("query: ", "")),
        ("Snowflake/snowflake-arctic-embed-l-v2.0", ("query: ", "")),
        ("embeddinggemma:300m", ("task: search result | query: ", "title: none | text: ")),
        ("text-embedding-3-small", ("", "")),
    ],
)
def test_models_that_we_know_get_what_they_want(model: str, wanted: tuple[str, str]) -> None:
    assert prefixes(model, question=AUTO, passage=AUTO) == wanted


@pytest.mark.parametrize(
    ("model", "only"),
    [
        ("bge-small-en-v1.5", True),
        ("cross-encoder/ms-marco-MiniLM-L12-v2", True),
        ("BAAI/bge-base-en", True),
        ("nomic-embed-text:latest", True),
        ("snowflake-arctic-embed:22m", True),
        ("mxbai-embed-large:335m", True),
        ("nomic-embed-text-v2-moe", False),
        ("snowflake-arctic-embed2", False),
        ("snowflake-arctic-embed-l-v2.0", False),
        ("snowflake-arctic-embed-m-v2.0", False),
        ("snowflake-arctic-embed-m-v1.5", True),
        ("bge-m3", False),
        ("multilingual-e5-small", False),
        ("jina-embeddings-v3", False),
        ("one-of-our-own", False),
    ],
)
def test_which_know_english_only(model: str, only: bool) -> None:
    assert knows_english_only(model) is only


@pytest.mark.parametrize(
    ("model", "cosine"),
    [
        ("multilingual-e5-small", 0.7),
        ("intfloat/multilingual-E5-large", 0.7),
        ("bge-small-en-v1.5", 0.4),
        ("mine", 0.4),
    ],
)
def test_which_cosine_means_nothing(model: str, cosine: float) -> None:
    assert cosine_of_nothing(model) == cosine


def test_what_the_owner_says_goes() -> None:
    assert prefixes("intfloat/e5-base", question="", passage="doc: ") == ("", "doc: ")
    assert prefixes("mine", question="q: ", passage=AUTO) == ("q: ", "")
