"""Which sections a piece has, and which outlines are none."""

from __future__ import annotations

import pytest

from config.settings import WritingSettings
from graph.errors import InputError
from server.writing.model import WritingRequest
from server.writing.plan import plan_of, read_outline

SETTINGS = WritingSettings()


def test_the_focus_lists_of_the_three_kinds() -> None:
    headings = {
        kind: [s.heading for s in plan_of("Otters", WritingRequest(topic="Otters", kind=kind), SETTINGS, "en")]
        for kind in ("research", "analysis", "explanation")
    }
    assert headings == {
        "research": ["Foundations", "Formalism", "Evidence", "Applications", "Frontiers"],
        "analysis": ["Overview", "Strengths", "Weaknesses", "Comparison", "Implications"],
        "explanation": ["Overview", "Process", "Pitfalls", "Advanced", "Examples"],
    }


def test_the_first_section_is_searched_broadly_and_formalism_has_more_room() -> None:
    plan = plan_of("Otters", WritingRequest(topic="Otters", kind="research"), SETTINGS, "en")
    assert [(s.queries, s.tokens, s.results) for s in plan] == [
        (("Otters",), 1900, 20),
        (("Otters formalism",), 1500, 10),
        (("Otters evidence",), 1000, 10),
        (("Otters applications",), 1000, 10),
        (("Otters frontiers",), 1000, 10),
    ]


def test_a_topic_in_french_has_french_sections_and_questions() -> None:
    plan = plan_of("Les loutres", WritingRequest(topic="Les loutres", kind="analysis"), SETTINGS, "fr")
    assert [s.heading for s in plan] == ["Vue d'ensemble", "Forces", "Faiblesses", "Comparaison", "Conséquences"]
    assert plan[1].queries == ("Les loutres forces",)


def test_an_outline_takes_the_place_of_the_list() -> None:
    plan = plan_of("Otters", WritingRequest(topic="Otters", outline=("Food", "Young")), SETTINGS, "en")
    assert [(s.heading, s.queries) for s in plan] == [
        ("Food", ("Otters", "Otters Food")),
        ("Young", ("Otters Young",)),
    ]


def test_an_outline_in_a_file_may_be_a_list_or_headings() -> None:
    assert read_outline("# Food\n\n- Young\n2. Enemies \n\t* Rivers\nThe 3. Crusade\n") == (
        "Food",
        "Young",
        "Enemies",
        "Rivers",
        "The 3. Crusade",
    )


def test_one_section_and_fifty_are_pieces() -> None:
    assert read_outline("Alone") == ("Alone",)
    assert len(read_outline("\n".join(f"Part {n}" for n in range(50)))) == 50


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no heading"),
        (" \n\n", "no heading"),
        ("Food\n\n-\nYoung", "line 3 is an empty heading"),
        ("Food\n##\n", "line 2 is an empty heading"),
        ("Food\n***\n", "line 2 is an empty heading"),
        ("Food\n\u200b\n", "line 2 is an empty heading"),
        ("Food\nYoung\n\n- FOOD", "line 4 repeats line 1"),
        ("\n".join(f"Part {n}" for n in range(51)), "51 headings; a piece may have 50"),
        ("x" * 201, "line 1 has 201 characters"),
    ],
)
def test_what_is_no_outline_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_outline(text)


def test_an_outline_of_a_request_is_checked_too() -> None:
    with pytest.raises(InputError, match="heading 2 repeats heading 1"):
        plan_of("Otters", WritingRequest(topic="Otters", outline=("Food", "food")), SETTINGS, "en")


def test_an_unknown_kind_is_named_with_the_known_ones() -> None:
    request = WritingRequest(topic="Otters", kind="poem")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="'poem'; the kinds are research, analysis, explanation"):
        plan_of("Otters", request, SETTINGS, "en")
