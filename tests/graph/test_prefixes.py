"""What is put before texts for models that want it."""

from __future__ import annotations

import pytest

from graph.prefixes import AUTO, BGE, prefixes


@pytest.mark.parametrize(
    ("model", "wanted"),
    [
        ("bge-small-en-v1.5", (BGE, "")),
        ("BAAI/bge-large-en-v1.5", (BGE, "")),
        ("BAAI/bge-m3", ("", "")),
        ("nomic-embed-text:latest", ("search_query: ", "search_document: ")),
        ("intfloat/multilingual-e5-small", ("query: ", "passage: ")),
        ("mxbai-embed-large:335m", (BGE, "")),
        ("text-embedding-3-small", ("", "")),
    ],
)
def test_models_that_we_know_get_what_they_want(model: str, wanted: tuple[str, str]) -> None:
    assert prefixes(model, question=AUTO, passage=AUTO) == wanted


def test_what_the_owner_says_goes() -> None:
    assert prefixes("intfloat/e5-base", question="", passage="doc: ") == ("", "doc: ")
    assert prefixes("mine", question="q: ", passage=AUTO) == ("q: ", "")
