"""How much each ranking counts in stage 1, from signs that can be measured (mission.md §4.2)."""

from __future__ import annotations

from server.keywords import Keywords

SURE = 8.0
"""Weight of the graph ranking where names cover the whole question, beside 1 for the vector ranking."""
UNSURE = 1.0
"""The same where they cover nothing."""


def graph_weight(keywords: Keywords) -> float:
    """A fixed average drags the better leg down: up to .2 recall@5 was lost so on 2wiki1000.

    So the graph ranking, which holds the vector leg's best passages as seeds too, counts more the better
    the question is covered by names it knows.
    """
    if not keywords.entities:
        return UNSURE
    return UNSURE + (SURE - UNSURE) * keywords.coverage
