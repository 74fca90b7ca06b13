"""Research over the opened backends: which part does what."""

from __future__ import annotations

from server.backends import Backends
from server.research.desk import Desk
from server.research.review import Review


def desk_over(backends: Backends) -> Desk | None:
    """None where the store keeps no research."""
    shelf = backends.shelf
    if shelf is None:
        return None
    return Desk(shelf, None, Review(shelf, names_of=backends.recognizer.names), seconds=3600.0)
