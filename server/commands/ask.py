"""`trivet ask QUESTION`."""

from __future__ import annotations

import asyncio
from typing import Unpack

import rich_click as click

from config.settings import Settings
from server.commands.answers import print_answer
from server.commands.filters import Filters, filter_of, filter_options
from server.commands.options import common_options, options_of
from server.commands.reach import reach
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.http.views import QueryRequest, QueryResponse


@click.command()
@click.argument("question")
@click.option("--persona", default="", metavar="NAME", help="Who answers, instead of the configured one.")
@filter_options
@click.option("--explain", is_flag=True, help="Show every rank, score and path that led to each source.")
@click.option("--no-web", is_flag=True, help="Answer from the wiki alone.")
@common_options
@click.pass_context
def command(
    context: click.Context, question: str, persona: str, explain: bool, no_web: bool, **filters: Unpack[Filters]
) -> None:
    """Answer a question from the wiki, and from the web if it is on; every claim is cited.

    A running server that holds the store is asked; otherwise the store is opened.
    """
    options = options_of(context)
    request = QueryRequest(
        question=question,
        persona=persona,
        filter=filter_of(**filters),
        web=not no_web,
        explain=explain or not options.json,
    )
    answer = asyncio.run(_ask(settings_of(options), request))
    if options.json:
        print_json(answer)
    else:
        print_answer(answer, Printer(), explain=explain)


async def _ask(settings: Settings, request: QueryRequest) -> QueryResponse:
    async with reach(settings, command="ask") as knowledge:
        return await knowledge.ask(request)
