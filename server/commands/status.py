"""`trivet status`."""

from __future__ import annotations

import asyncio

import rich_click as click

from config.settings import Settings
from server.commands.options import common_options, options_of
from server.commands.remote import Readiness, readiness
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.status import StoreStatus, status_of


@click.command()
@click.option("--failed", is_flag=True, help="Name the pages that could not be read, and why.")
@common_options
@click.pass_context
def command(context: click.Context, failed: bool) -> None:
    """Say what is in the store and who holds it; a server is asked how it does.

    It can be called while an ingestion or a server is at work.
    """
    options = options_of(context)
    status, server = asyncio.run(_status(settings_of(options)))
    if options.json:
        print_json(fields_of(status, server=server))
    else:
        _print(status, server, Printer())
        if failed:
            _print_failed(status, Printer())


async def _status(settings: Settings) -> tuple[StoreStatus, Readiness | None]:
    status = await status_of(settings)
    if status.holder is None or not status.holder.url:
        return status, None
    return status, await readiness(status.holder.url, settings)


def _print(status: StoreStatus, server: Readiness | None, out: Printer) -> None:
    rows = [("home", status.home), ("held by", str(status.holder) if status.holder else "nobody")]
    if server is not None:
        details = " · ".join(f"{name} {state}" for name, state in server.dependencies.items())
        rows.append(("server", f"{server.status}{f' ({details})' if details else ''}"))
    counts, stamp = status.counts, status.stamp
    if counts is None or stamp is None:
        out.pairs([*rows, ("store", "empty; fill it with `trivet ingest PATH`"), *_of_research(status)])
        return
    rows += [
        ("model", f"{stamp.embedding_model}, {stamp.dimension} dimensions"),
        *(
            (f"wiki {s.name}", f"{s.pages:,} pages, {s.redirects:,} redirects, {s.chunks:,} chunks")
            for s in status.sources
        ),
        (
            "graph",
            f"{counts.entities:,} entities, {counts.mentions:,} mentions, {counts.links:,} links, "
            f"{counts.categories:,} categories",
        ),
        *_of_research(status),
        ("disk", f"{status.bytes / 1e6:,.1f} MB{_of_tokens(status)}"),
    ]
    if status.failed:
        rows.append(("failed", f"{len(status.failed):,} pages; `trivet status --failed` names them"))
    if status.unfinished:
        rows.append(("unfinished", f"{status.unfinished:,} chunks of a batch under way or cut short"))
    out.pairs(rows)


def _of_research(status: StoreStatus) -> list[tuple[str, str]]:
    topics = ", ".join(f"{count:,} {state}" for state, count in status.topics.items())
    kept = ", ".join(f"{count:,} in {name}" for name, count in status.kept.items())
    return [(name, said) for name, said in (("topics", topics), ("facts", kept)) if said]


def _of_tokens(status: StoreStatus) -> str:
    return f", of which {status.token_bytes / 1e6:,.1f} MB token vectors" if status.token_bytes else ""


def _print_failed(status: StoreStatus, out: Printer) -> None:
    if not status.failed:
        out.line("no page has failed")
    for letter in status.failed:
        since = f", since {letter.first}, {letter.tries} times" if letter.tries > 1 else f", {letter.last}"
        out.line((f"{letter.source}: ", "bold"), f"{letter.key}: {letter.reason}{since}")
    if status.failed:
        out.line("`trivet sync --retry` reads them again.")
