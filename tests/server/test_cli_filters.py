"""The filters of `trivet ask` and `trivet search`: what is typed reaches the question."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date

import pytest

from config.settings import Settings
from graph.model import PageType
from server.commands import ask, search
from server.http.views import (
    Filter,
    QueryRequest,
    QueryResponse,
    SearchRequest,
    SearchResponse,
    view_answer,
    view_search,
)
from tests.server.cli_runner import InProcessCli
from tests.server.http.scripted import ANSWER, FOUND

TYPED = (
    *("--source", "books", "--source", "notes", "--category", "Novels", "--language", "fr", "--type", "article"),
    *("--modified-from", "2026-01-31", "--modified-to", "2026-02-01"),
)
MEANT = Filter(
    sources=("books", "notes"),
    categories=("Novels",),
    languages=("fr",),
    page_types=(PageType.ARTICLE,),
    modified_from=date(2026, 1, 31),
    modified_to=date(2026, 2, 1),
)


class Listening:
    """Knowledge that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[SearchRequest] = []

    async def ask(self, request: QueryRequest) -> QueryResponse:
        self.asked.append(request)
        return view_answer(ANSWER, explain=request.explain)

    async def search(self, request: SearchRequest) -> SearchResponse:
        self.asked.append(request)
        return view_search(FOUND, explain=request.explain)


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Listening:
    heard = Listening()

    @asynccontextmanager
    async def reach(_settings: Settings, *, command: str) -> AsyncIterator[Listening]:
        yield heard

    for module in (ask, search):
        monkeypatch.setattr(module, "reach", reach)
    return heard


@pytest.mark.parametrize("command", ["ask", "search"])
def test_every_filter_reaches_the_question(cli: InProcessCli, listening: Listening, command: str) -> None:
    ended = cli(command, "Who wrote it?", *TYPED, "--json")
    assert ended.code == 0, ended.err
    assert [request.filter for request in listening.asked] == [MEANT]


@pytest.mark.parametrize("command", ["ask", "search"])
def test_without_filters_all_pages_may_answer(cli: InProcessCli, listening: Listening, command: str) -> None:
    assert cli(command, "Who wrote it?", "--json").code == 0
    assert listening.asked[0].filter == Filter()


@pytest.mark.parametrize("command", ["ask", "search"])
def test_the_persona_reaches_the_question(cli: InProcessCli, listening: Listening, command: str) -> None:
    assert cli(command, "Who wrote it?", "--persona", "teacher", "--json").code == 0
    assert listening.asked[0].persona == "teacher"


@pytest.mark.parametrize(
    "typed", [("--modified-from", "yesterday"), ("--modified-to", "2026-02-30"), ("--type", "poem")]
)
def test_what_is_no_day_or_type_is_a_usage_error(
    cli: InProcessCli, listening: Listening, typed: tuple[str, str]
) -> None:
    ended = cli("ask", "Who wrote it?", *typed)
    assert ended.code == 2
    assert typed[1] in ended.err
    assert listening.asked == []
