"""`trivet search QUESTION`."""

from __future__ import annotations

import asyncio
from typing import Unpack

import rich_click as click

from config.settings import Settings
from server.commands.answers import print_found
from server.commands.filters import Filters, filter_of, filter_options
from server.commands.options import common_options, options_of
from server.commands.reach import reach
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.http.views import SearchRequest, SearchResponse


@click.command()
@click.argument("question")
@click.option("--limit", type=click.IntRange(0, 50), default=0, help="Entries of evidence; 0 is the configured number.")
@click.option("--persona", default="", metavar="NAME", help="By whose source weights, instead of the configured one's.")
@filter_options
@click.option("--explain", is_flag=True, help="Show every rank, score and path that led to each passage.")
@click.option("--no-web", is_flag=True, help="Search the wiki alone.")
@common_options
@click.pass_context
def command(
    context: click.Context,
    question: str,
    limit: int,
    persona: str,
    explain: bool,
    no_web: bool,
    **filters: Unpack[Filters],
) -> None:
    """Show the passages that an answer would rest on, without an answer; no language model is asked."""
    options = options_of(context)
    request = SearchRequest(
        question=question,
        limit=limit,
        persona=persona,
        filter=filter_of(**filters),
        web=not no_web,
        explain=explain or not options.json,
    )
    found = asyncio.run(_search(settings_of(options), request))
    if options.json:
        print_json(found)
    else:
        print_found(found, Printer(), explain=explain)


async def _search(settings: Settings, request: SearchRequest) -> SearchResponse:
    async with reach(settings, command="search") as knowledge:
        return await knowledge.search(request)
