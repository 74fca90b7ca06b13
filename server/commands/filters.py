"""The options of `ask` and `search` that say which pages may answer."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypedDict, TypeVar, Unpack

import rich_click as click

from graph.model import PageType
from server.http.views import Filter

F = TypeVar("F", bound=Callable[..., object])
DAY = click.DateTime(formats=["%Y-%m-%d"])


class Filters(TypedDict):
    """What a command is given by these options."""

    sources: tuple[str, ...]
    categories: tuple[str, ...]
    languages: tuple[str, ...]
    page_types: tuple[str, ...]
    modified_from: datetime | None
    modified_to: datetime | None


def filter_options(function: F) -> F:
    """`--source`, `--category`, `--language`, `--type`, `--modified-from`, `--modified-to`; see `filter_of`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


def filter_of(**given: Unpack[Filters]) -> Filter:
    since, until = given["modified_from"], given["modified_to"]
    return Filter(
        sources=given["sources"],
        categories=given["categories"],
        languages=given["languages"],
        page_types=tuple(map(PageType, given["page_types"])),
        modified_from=since.date() if since else None,
        modified_to=until.date() if until else None,
    )


OPTIONS = (
    click.option("--source", "sources", multiple=True, metavar="NAME", help="Only this wiki; may be repeated."),
    click.option("--category", "categories", multiple=True, metavar="NAME", help="Only pages of it; may be repeated."),
    click.option(
        "--language", "languages", multiple=True, metavar="CODE", help="Only pages in it, like fr; may be repeated."
    ),
    click.option(
        "--type",
        "page_types",
        multiple=True,
        type=click.Choice([kind.value for kind in PageType]),
        metavar="TYPE",
        help="Only pages of it: article, list or stub; may be repeated.",
    ),
    click.option(
        "--modified-from", type=DAY, metavar="DAY", help="Only pages changed on that day, like 2026-01-31, or later."
    ),
    click.option("--modified-to", type=DAY, metavar="DAY", help="Only pages changed on that day or earlier."),
)
