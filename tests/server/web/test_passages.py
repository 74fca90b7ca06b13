"""Cutting text into passages and ranking them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.names import words
from server.web.passages import best_passages, bm25_scores, split_passages

WORDS = ["beacon", "lens", "mast", "ferry", "comet", "of", "the", "harbour.", "salt,", "wind!", "量子纠缠", "là"]
WORD = st.sampled_from(WORDS)
TEXT = st.lists(st.lists(WORD, max_size=60).map(" ".join), max_size=12).map("\n".join)


def test_paragraphs_are_grouped_up_to_the_limit() -> None:
    text = "\n\n".join(f"p{i} " + "word " * 50 for i in range(5))
    passages = split_passages(text, 110)
    assert [len(words(passage)) for passage in passages] == [102, 102, 51]
    assert passages[0].startswith("p0 word")


def test_a_long_paragraph_is_cut_at_its_sentences() -> None:
    text = " ".join(f"Sentence number {i} has six words." for i in range(40))
    passages = split_passages(text, 60)
    assert all(passage.endswith("words.") for passage in passages)
    assert " ".join(passages).replace("\n", " ") == text


def test_scripts_without_spaces_are_cut() -> None:
    assert max(map(len, split_passages("量子纠缠是一种现象" * 50))) <= 151
    assert [len(words(passage)) for passage in split_passages("量子。" * 100, 150)] == [150, 50]


@given(TEXT)
def test_nothing_is_lost_added_or_reordered_and_no_passage_is_too_long(text: str) -> None:
    passages = split_passages(text, 40)
    assert [word for passage in passages for word in words(passage)] == words(text)
    assert all(0 < len(words(passage)) <= 40 for passage in passages)


def test_the_passage_with_the_rare_words_wins() -> None:
    passages = ["The mast is old.", "The beacon of Sallow Point cost 210,000 crowns.", "The beacon is new."]
    assert best_passages(passages, "What did the Sallow Point beacon cost?", 2) == [passages[1], passages[2]]


def test_without_any_match_the_page_s_beginning_is_taken() -> None:
    assert best_passages(["a b", "c d", "e f"], "zzz", 2) == ["a b", "c d"]
    assert best_passages([], "zzz", 2) == []
    assert best_passages(["a"], "", 2) == ["a"]


@given(st.lists(st.lists(WORD, max_size=8), max_size=8), st.lists(WORD, max_size=4))
def test_scores_are_not_negative_and_zero_without_a_shared_word(documents: list[list[str]], query: list[str]) -> None:
    for document, score in zip(documents, bm25_scores(documents, query), strict=True):
        assert (score > 0) == bool(set(document) & set(query))
