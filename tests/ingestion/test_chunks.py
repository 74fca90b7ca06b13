"""Chunks cover a page exactly, keep rows and fences whole, and stay within the embedder's limit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.model import Chunk, Page, Section, chunk_id, embedded_text, source_hash
from ingestion.chunks import chunk_page
from ingestion.clean import TextAssembly, table_rows

TOKEN = re.compile(r"\w{1,4}|[^\w\s]")


def word_pieces(text: str) -> int:
    """Like BERT's tokenizer: counts add up, and every text costs two more."""
    return len(TOKEN.findall(text)) + 2


def by_length(text: str) -> int:
    """A count that does not add up."""
    return len(text) // 3 + 1


def page_of(build: Callable[[TextAssembly], None], title: str = "Petrel") -> Page:
    assembly = TextAssembly(make_anchor=lambda words: words.lower(), repeat=lambda anchor, n: f"{anchor}-{n}")
    build(assembly)
    return Page(source="s", key="k", title=title, text=assembly.text(), sections=tuple(assembly.sections))


def headed(*parts: tuple[int, str, str], lead: str = "") -> Page:
    def build(assembly: TextAssembly) -> None:
        assembly.block(lead)
        for level, title, text in parts:
            assembly.heading(level, title)
            assembly.block(text)

    return page_of(build)


def words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{number}" for number in range(count))


def chunk(page: Page, max_tokens: int = 64) -> list[Chunk]:
    return chunk_page(page, count_tokens=word_pieces, max_tokens=max_tokens)


def test_a_section_is_a_chunk_with_its_path_and_anchor() -> None:
    page = headed(
        (2, "Life", words(20)), (3, "Youth", words(15, "young")), (2, "Works", words(18)), lead=words(12, "lead")
    )
    lead, life, youth, works = chunk(page)
    assert (lead.heading_path, lead.anchor, lead.ordinal) == ((), "", 0)
    assert (life.heading_path, life.anchor) == (("Life",), "life")
    assert (youth.heading_path, youth.anchor) == (("Life", "Youth"), "youth")
    assert (works.heading_path, works.ordinal) == (("Works",), 3)
    assert "#" not in works.text


def test_ids_and_hashes_are_those_of_the_model() -> None:
    page = headed((2, "Life", words(20)))
    (only,) = chunk(page)
    hashed = source_hash(embedded_text("Petrel", ("Life",), only.text))
    assert (only.source_hash, only.id, only.page_id) == (hashed, chunk_id(page.id, hashed, 0), "s:k")


def test_equal_texts_in_one_page_have_different_ids() -> None:
    page = headed((2, "Ports", words(20)), (2, "Ports", words(20)))
    first, second = chunk(page)
    assert first.source_hash == second.source_hash
    assert first.id != second.id


def test_an_edit_elsewhere_changes_no_id() -> None:
    before = chunk(headed((2, "Life", words(20)), (2, "Works", words(20))))
    after = chunk(headed((2, "Life", words(25, "new")), (2, "Works", words(20))))
    assert before[1].id == after[1].id
    assert before[0].id != after[0].id


@pytest.mark.parametrize("text", ["", "  \n\n ", "## Life\n\n## Works"])
def test_no_text_no_chunk(text: str) -> None:
    sections = tuple(
        Section(start=match.start(), level=2, title=match[1], anchor=match[1])
        for match in re.finditer(r"## (\w+)", text)
    )
    assert chunk(Page(source="s", key="k", title="Petrel", text=text, sections=sections)) == []


def test_tiny_siblings_become_one_chunk_under_their_parent() -> None:
    page = headed((2, "Crew", words(27)), (3, "Cook", "Ansa."), (3, "Mate", "Tomas."), (3, "Boy", "Olav."))
    crew, others = chunk(page)
    assert crew.text == words(27)
    assert (others.heading_path, others.anchor) == (("Crew",), "cook")
    assert others.text == "### Cook\n\nAnsa.\n\n### Mate\n\nTomas.\n\n### Boy\n\nOlav."


def test_a_tiny_section_joins_the_one_above_it() -> None:
    page = headed((2, "Crew", words(10)), (3, "Cook", "Ansa."))
    (both,) = chunk(page)
    assert (both.heading_path, both.anchor) == (("Crew",), "crew")
    assert both.text == f"{words(10)}\n\n### Cook\n\nAnsa."


def test_tiny_sections_of_different_parents_stay_apart() -> None:
    page = headed((2, "Crew", ""), (3, "Cook", "Ansa."), (2, "Ports", ""), (3, "Home", "Norvik."))
    assert [part.heading_path for part in chunk(page)] == [("Crew", "Cook"), ("Ports", "Home")]


def test_rows_stay_whole() -> None:
    rows = table_rows(["Ship", "Port", "Year"], [[f"Petrel {n}", words(6), str(1900 + n)] for n in range(40)])
    page = headed((2, "Ships", rows))
    chunks = chunk(page)
    assert len(chunks) > 5
    held = [line for part in chunks for line in part.text.split("\n")]
    assert held == rows.split("\n")


def test_a_fence_stays_whole_and_blank_lines_in_it_too() -> None:
    code = "def sail(ship):\n\n    return ship\n\n# and so on"
    page = page_of(
        lambda assembly: (assembly.block(words(40)), assembly.code(code, "py"), assembly.block(words(40)))[0]
    )
    assert any(f"```py\n{code}\n```" in part.text for part in chunk(page))


def test_a_row_longer_than_the_limit_is_cut_between_cells() -> None:
    row = table_rows(["Ship", "Ports", "Crew", "Log"], [["Petrel", words(20), words(20), words(20)]])
    chunks = chunk(headed((2, "Ships", row)), max_tokens=72)
    assert len(chunks) > 1
    assert all(part.text.startswith(("Ship: ", "Ports: ", "Crew: ", "Log: ")) for part in chunks)


def test_a_fence_longer_than_the_limit_is_cut_between_lines() -> None:
    lines = [f"line_{number} = {number}" for number in range(60)]
    page = page_of(lambda assembly: assembly.code("\n".join(lines), "py"))
    held = [line for part in chunk(page) for line in part.text.split("\n")]
    assert held == ["```py", *lines, "```"]


def test_a_paragraph_longer_than_the_limit_is_cut_between_sentences() -> None:
    text = " ".join(f"The ship {number} sailed to Norvik and came back." for number in range(30))
    chunks = chunk(headed((2, "Log", text)))
    assert len(chunks) > 3
    assert all(part.text.endswith("back.") for part in chunks)


def test_no_tiny_rest() -> None:
    text = "\n\n".join(words(10, f"p{number}x") for number in range(7))
    sizes = [word_pieces(part.text) for part in chunk(headed((2, "Log", text)))]
    assert min(sizes) > max(sizes) / 2


def test_a_word_longer_than_the_limit_is_cut() -> None:
    chunks = chunk(headed((2, "Log", "x" * 5000)))
    assert "".join(part.text for part in chunks) == "x" * 5000


def test_headings_too_long_for_the_limit_give_way_from_the_outermost() -> None:
    page = headed((1, words(30, "out"), ""), (2, "Log", words(100)))
    chunks = chunk(page)
    assert all(part.heading_path == ("Log",) for part in chunks)
    assert all(word_pieces(embedded_text("Petrel", part.heading_path, part.text)) <= 64 for part in chunks)


def test_a_title_as_long_as_the_limit_leaves_a_quarter_for_text() -> None:
    def build(assembly: TextAssembly) -> None:
        assembly.block(words(100))

    page = page_of(build, title=words(40, "title"))
    sizes = [word_pieces(part.text) for part in chunk(page)]
    assert max(sizes) <= 64 // 4 + 2


PROSE = st.text(alphabet="ab .;:#-|`\n量e\u0301", max_size=120)
BLOCK = st.one_of(
    st.tuples(st.just("block"), PROSE),
    st.tuples(st.just("rows"), st.lists(st.text(alphabet="ab ;", max_size=30), min_size=1, max_size=6)),
    st.tuples(st.just("code"), PROSE),
    st.tuples(st.just("heading"), st.integers(1, 6)),
)


def built(blocks: list[tuple[str, object]]) -> tuple[Page, list[str]]:
    """A page, and the rows and fences in it that must stay whole."""
    whole: list[str] = []

    def build(assembly: TextAssembly) -> None:
        for number, (kind, content) in enumerate(blocks):
            if kind == "heading" and isinstance(content, int):
                assembly.heading(content, f"Heading {number}")
            elif kind == "rows" and isinstance(content, list):
                rows = table_rows(["x", "y", "z"], [content[:3], content[3:]])
                assembly.block(rows)
                whole.extend(line for line in rows.split("\n") if line.strip())
            elif kind == "code" and isinstance(content, str):
                before = len(assembly.text())
                assembly.code(content, "py")
                whole.extend([assembly.text()[before:].strip("\n")] if len(assembly.text()) > before else [])
            else:
                assembly.block(str(content))

    page = page_of(build)
    return page, whole


@given(st.lists(BLOCK, max_size=12), st.integers(12, 80), st.sampled_from([word_pieces, by_length]))
def test_chunks_of_any_page(blocks: list[tuple[str, object]], max_tokens: int, count: Callable[[str], int]) -> None:
    page, whole = built(blocks)
    chunks = chunk_page(page, count_tokens=count, max_tokens=max_tokens)
    covered = [0] * len(page.text)
    for number, part in enumerate(chunks):
        assert part.ordinal == number
        assert page.text[part.start : part.end] == part.text
        assert part.text == part.text.strip() != ""
        for at in range(part.start, part.end):
            covered[at] += 1
    heading_lines = {
        at for section in page.sections for at in range(section.start, (page.text + "\n").index("\n", section.start))
    }
    assert all(times <= 1 for times in covered)
    missed = [at for at, times in enumerate(covered) if not times and not page.text[at].isspace()]
    assert set(missed) <= heading_lines
    assert len({part.id for part in chunks}) == len(chunks)
    for part in chunks:
        if count(embedded_text(page.title, part.heading_path, "")) <= max_tokens - max_tokens // 4:
            fits = count(embedded_text(page.title, part.heading_path, part.text)) <= max_tokens
            assert fits or len(part.text) == 1
    for text in whole:
        if count(text) <= max_tokens // 4:
            assert any(text in part.text for part in chunks), text
