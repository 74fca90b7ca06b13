"""What a text names, as a function of the text and the titles alone."""

from __future__ import annotations

from graph.names import words
from graph.titles import PageLinks, TitleDictionary, is_nameable, mentioned

TITLES = TitleDictionary.build(
    [
        ("p1", "Mercury (planet)", "Mercury (planet)"),
        ("p2", "Mercury (element)", "Mercury (element)"),
        ("p3", "New York City", "New York City"),
        ("p3", "NYC", "New York City"),
        ("p4", "New York", "New York"),
        ("p5", "It", "It"),
        ("p6", "量子纠缠实验", "量子纠缠实验"),
        ("p7", "The Lord of the Rings", "The Lord of the Rings"),
    ]
)


def named(text: str, names: tuple[str, ...] = (), links: dict[str, str] | None = None) -> dict[str, int]:
    return dict(mentioned(words(text), names, PageLinks.of(links or {}), TITLES))


def test_the_longest_title_wins() -> None:
    assert named("From New York City to New York") == {"new york city": 1, "new york": 1}


def test_an_alias_is_its_page() -> None:
    assert named("NYC, NYC!") == {"new york city": 2}


def test_whole_words_only() -> None:
    assert named("a newyorker in new yorkshire") == {}


def test_a_shared_name_means_all_its_owners() -> None:
    assert named("Mercury rises") == {"mercury element": 1, "mercury planet": 1}


def test_a_link_settles_a_shared_name_on_its_page() -> None:
    assert named("Mercury rises", links={"the planet": "mercury planet"}) == {"mercury planet": 1}


def test_what_a_link_shows_is_its_target() -> None:
    assert named("the big apple never sleeps", links={"big apple": "new york city"}) == {"new york city": 1}


def test_names_without_a_title_are_entities_too() -> None:
    assert named("Ada Holm sailed", names=("Ada Holm",)) == {"ada holm": 1}


def test_dates_and_numbers_are_not() -> None:
    assert named("on 20 March 851", names=("20 March 851", "851")) == {}


def test_a_name_cut_within_a_word_is_left_out() -> None:
    assert named("O'Brien sailed", names=("Brien",)) == {}


def test_function_words_name_nothing() -> None:
    assert named("It is in the US, of course") == {}
    assert not is_nameable("it")
    assert is_nameable("lord of the rings")


def test_titles_without_spaces_between_words() -> None:
    assert named("关于量子纠缠实验的文章") == {"量 子 纠 缠 实 验": 1}


def test_a_title_with_an_article() -> None:
    assert named("He read The Lord of the Rings twice") == {"lord of the rings": 1}


def test_entities_carry_all_their_keys() -> None:
    assert TITLES.entities["new york city"].keys == ("new york city", "nyc")
    assert TITLES.entities["mercury planet"].keys == ("mercury", "mercury planet")


def test_a_link_to_an_alias_leads_to_the_page_and_to_nothing_is_kept() -> None:
    assert TITLES.link_target("NYC") == "new york city"
    assert TITLES.link_target("Red Link") == "red link"
