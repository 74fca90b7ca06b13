"""The graph leg's weights: what the passages count beside the names."""

from __future__ import annotations

import pytest

from config.settings import GraphSettings
from graph.model import Scored
from graph.pagerank import Walk
from server.graph_leg import passage_pull, passage_seeds, passage_weight, specificity
from server.keywords import Keywords
from tests.graph.test_pagerank import neighbourhood

# Entity 0 has a page of one chunk, entity 1 a page of eight, entity 2 no page but eight chunks that name it.
WALK = Walk.prepare(neighbourhood([[0], *[[2]] * 8], [0, *[1] * 8], 3))


def keywords(*numbers: int, coverage: float = 1.0) -> Keywords:
    ids = [f"e{number:03}" for number in numbers]
    return Keywords((), dict.fromkeys(ids, 1.0), dict.fromkeys(ids, "Name"), coverage)


def test_a_title_of_one_passage_is_specific_and_one_of_many_is_not() -> None:
    assert specificity(keywords(0), WALK) == 1.0
    assert specificity(keywords(1), WALK) == 0.5
    assert specificity(keywords(2), WALK) == 0.5, "a name without a page: by the chunks that name it"
    assert specificity(keywords(0, 1), WALK) == 0.75
    assert specificity(keywords(7), WALK) == 0.0, "not in this part of the graph"


def test_passages_count_the_more_the_less_the_names_say() -> None:
    settings = GraphSettings()
    weights = [passage_weight(keywords(0), share, settings) for share in (0.0, 0.3, 0.7, 1.0)]
    assert weights == sorted(weights)
    assert weights[0] == settings.passage_weight_low
    assert weights[-1] == pytest.approx(settings.passage_weight_high)
    assert passage_weight(keywords(), 0.0, settings) == 1.0, "nothing else to start from"


def test_passages_keep_their_order_where_names_say_nothing() -> None:
    settings = GraphSettings()
    assert passage_pull(0.0, settings) == settings.passage_pull
    assert passage_pull(0.5, settings) < 2 * settings.passage_pull
    assert passage_pull(1.0, settings) == pytest.approx(settings.passage_pull_open)


def test_seeds_follow_the_scores_and_sum_to_one() -> None:
    found = [Scored(key="c000", score=1.0), Scored(key="c001", score=0.9), Scored(key="gone", score=0.8)]
    seeds = passage_seeds(found, WALK)
    assert seeds.sum() == pytest.approx(1)
    assert seeds[0] / seeds[1] == pytest.approx(2.71828, rel=1e-4)
    assert seeds[2:].sum() == 0
    assert passage_seeds([], WALK).sum() == 0
