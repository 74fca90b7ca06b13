"""The names in a question: titles, names and quotations, never substrings, never synonyms."""

from __future__ import annotations

import pytest

from graph.graph_model import Entity
from server.keywords import Keywords, QuestionWords, choose_keywords, keys_to_look_up

KNOWN = {
    "animal farm": (Entity(id="animal farm", name="Animal Farm", keys=("animal farm",), titled=True),),
    "author": (Entity(id="author", name="Author", keys=("author",), titled=True),),
    "film": (Entity(id="film", name="film", keys=("film",), titled=False),),
    "lothair ii": (Entity(id="lothair ii", name="Lothair II", keys=("lothair ii",), titled=True),),
    "lothair": (Entity(id="lothair", name="lothair", keys=("lothair",), titled=False),),
    "mercury": (
        Entity(id="mercury element", name="Mercury (element)", keys=("mercury", "mercury element"), titled=True),
        Entity(id="mercury planet", name="Mercury (planet)", keys=("mercury", "mercury planet"), titled=True),
    ),
    "gull rock": (Entity(id="gull rock", name="gull rock", keys=("gull rock",), titled=False),),
    "量 子 纠 缠": (Entity(id="量 子 纠 缠", name="量子纠缠", keys=("量 子 纠 缠",), titled=True),),
}


def keywords(text: str, names: tuple[str, ...] = ()) -> Keywords:
    question = QuestionWords.of(text)
    asked = keys_to_look_up(question, text, names)
    return choose_keywords(question, text, names, {key: KNOWN[key] for key in asked if key in KNOWN})


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Who wrote Animal Farm?", ("animal farm",)),
        ("who wrote animal farm?", ("animal farm",)),
        ("When did Lothair Ii's mother die?", ("lothair ii",)),
        ("What is author2000?", ()),
        ("Which film came first?", ()),
        ("what is gull rock", ("gull rock",)),
        ("What is on gull rock, and who is Erin?", ()),
        ("What is on Gull Rock?", ("gull rock",)),
        ("量子纠缠是什么？", ("量 子 纠 缠",)),
        ('Which "film" was meant?', ("film",)),
        ("?!", ()),
    ],
)
def test_keys(text: str, keys: tuple[str, ...]) -> None:
    assert keywords(text).keys == keys


def test_a_shared_key_is_shared() -> None:
    assert keywords("What is Mercury?").entities == {"mercury element": 0.5, "mercury planet": 0.5}


def test_names_found_by_the_recogniser_count() -> None:
    assert keywords("and lothair, who was that", names=("lothair",)).keys == ("lothair",)


def test_coverage() -> None:
    assert keywords("Who wrote Animal Farm?").coverage == pytest.approx(2 / 3)
    assert keywords("Animal Farm?").coverage == 1.0
    assert keywords("Which film came first?").coverage == 0.0


def test_a_very_long_question_is_cut() -> None:
    assert len(keys_to_look_up(QuestionWords.of("lamp oil " * 20_000), "", ())) < 4000
