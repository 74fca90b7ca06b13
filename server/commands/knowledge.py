"""`trivet knowledge`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import rich_click as click

from config.settings import Settings
from graph.research import FactState
from server.commands.knowledge_review import review_facts
from server.commands.options import Options, common_options, options_of
from server.commands.reach_research import ReachedCabinet, reach_cabinet, reach_desk, who
from server.commands.research_printing import print_fact, print_outcomes
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.commands.terminal_questions import check_terminal
from server.exit_codes import ExitCode
from server.http.research_views import BulkChange, FactView, FinishedView, FinishRequest, Outcome
from server.research.changes import Action

PAGE = 500
"""Facts asked for at once."""


@click.group()
@common_options
def command() -> None:
    """Decide about the facts that research proposed: what is kept answers questions, beside the wiki."""


@command.command("list")
@click.option("--topic", default="", metavar="SLUG", help="Only of that topic.")
@click.option("--state", type=click.Choice([state.value for state in FactState]), help="Only those in it.")
@click.option("--category", default="", metavar="NAME", help="Only of that category.")
@common_options
@click.pass_context
def list_command(context: click.Context, topic: str, state: str | None, category: str) -> None:
    """List facts, the oldest first."""
    options = options_of(context)
    wanted = FactState(state) if state else None

    async def read() -> list[FactView]:
        async with reach_cabinet(settings_of(options)) as cabinet:
            return await all_facts(cabinet, topic=topic, category=category, state=wanted)

    facts = asyncio.run(read())
    if options.json:
        print_json({"facts": facts})
        return
    out = Printer()
    if not facts:
        out.line("no facts; `trivet research run` proposes them")
    for fact in facts:
        print_fact(fact, out)


async def all_facts(
    cabinet: ReachedCabinet, *, topic: str, category: str = "", state: FactState | None = None
) -> list[FactView]:
    found: list[FactView] = []
    cursor: str | None = ""
    while cursor is not None:
        page = await cabinet.facts(topic=topic, category=category, state=state, limit=PAGE, cursor=cursor)
        found += page.facts
        cursor = page.next
    return found


@command.command("show")
@click.argument("fact_id", metavar="ID")
@common_options
@click.pass_context
def show(context: click.Context, fact_id: str) -> None:
    """Show a fact with the quote that supports it, and where it is from."""
    options = options_of(context)

    async def read() -> FactView:
        async with reach_cabinet(settings_of(options)) as cabinet:
            return await cabinet.fact(fact_id)

    fact = asyncio.run(read())
    if options.json:
        print_json(fact)
    else:
        print_fact(fact, Printer())


@command.command("keep")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.option("--evergreen", is_flag=True, help="They help with other topics too.")
@click.option("--expires", default=None, metavar="DATE", help="They answer until then, like 2027-01-31.")
@common_options
@click.pass_context
def keep(context: click.Context, ids: tuple[str, ...], evergreen: bool, expires: str | None) -> ExitCode:
    """Approve facts: from now on they answer questions."""
    chosen = True if evergreen else None
    return _decide(
        options_of(context),
        [BulkChange(id=each, action=Action.KEEP, evergreen=chosen, expires=expires) for each in dict.fromkeys(ids)],
    )


@command.command("edit")
@click.argument("fact_id", metavar="ID")
@click.option("--text", default=None, metavar="TEXT", help="What it says.")
@click.option("--quote", default=None, metavar="TEXT", help="The page's own words; they must be in it.")
@common_options
@click.pass_context
def edit(context: click.Context, fact_id: str, text: str | None, quote: str | None) -> ExitCode:
    """Say a fact in other words, or support it with another quote of its page."""
    return _decide(options_of(context), [BulkChange(id=fact_id, action=Action.EDIT, text=text, quote=quote)])


@command.command("reject")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@common_options
@click.pass_context
def reject(context: click.Context, ids: tuple[str, ...]) -> ExitCode:
    """Reject facts: they answer nothing, and are not proposed again."""
    return _decide_alike(context, ids, Action.REJECT)


@command.command("delete")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@common_options
@click.pass_context
def delete(context: click.Context, ids: tuple[str, ...]) -> ExitCode:
    """Delete facts for good; unlike rejected ones they may be proposed again."""
    return _decide_alike(context, ids, Action.DELETE)


@command.command("undo")
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@common_options
@click.pass_context
def undo(context: click.Context, ids: tuple[str, ...]) -> ExitCode:
    """Take back the last change of facts, whoever made it."""
    return _decide_alike(context, ids, Action.UNDO)


@command.command("finish")
@click.argument("slug")
@click.option("--force", is_flag=True, help="Also while facts wait for a decision; they go on waiting.")
@common_options
@click.pass_context
def finish(context: click.Context, slug: str, force: bool) -> None:
    """End the review of a topic: what was kept stays, its research passages are removed."""
    options = options_of(context)
    done = asyncio.run(_finish(settings_of(options), slug, force=force))
    if options.json:
        print_json(done)
    else:
        waiting = f"; {done.undecided} facts go on waiting" if done.undecided else ""
        Printer().line(f"{slug} is {done.topic.state.value}: {done.wiped} research passages removed{waiting}")


async def _finish(settings: Settings, slug: str, *, force: bool) -> FinishedView:
    async with reach_desk(settings, command="knowledge finish") as desk:
        return await desk.finish(slug, FinishRequest(by=who(), force=force))


@command.command("review")
@click.argument("slug")
@common_options
@click.pass_context
def review(context: click.Context, slug: str) -> None:
    """Go through the facts of a topic that wait for a decision, one after the other.

    Each is shown with its quote and source: keep it, edit it, reject it, delete it, undo the last decision, skip it, or
    quit. Every decision is stored at once.
    """
    options = options_of(context)
    check_terminal("`trivet knowledge review`")
    decided = asyncio.run(_review(settings_of(options), slug))
    if options.json:
        print_json({"decided": decided})


async def _review(settings: Settings, slug: str) -> int:
    async with reach_desk(settings, command="knowledge review") as desk:
        await desk.topic(slug)  # an unknown one is an error, not a topic without facts
        facts = await all_facts(desk, topic=slug, state=FactState.PROPOSED)
        return await review_facts(desk, facts, slug, who())


def _decide_alike(context: click.Context, ids: tuple[str, ...], action: Action) -> ExitCode:
    return _decide(options_of(context), [BulkChange(id=each, action=action) for each in dict.fromkeys(ids)])


def _decide(options: Options, changes: Sequence[BulkChange]) -> ExitCode:
    """5 where some were refused, 2 where all were."""
    outcomes = asyncio.run(_changed(settings_of(options), changes))
    if options.json:
        print_json({"outcomes": outcomes})
    print_outcomes(outcomes, Printer() if not options.json else None, Printer(to_stderr=True))
    refused = sum(outcome.error is not None for outcome in outcomes)
    if not refused:
        return ExitCode.OK
    return ExitCode.PARTIAL if refused < len(outcomes) else ExitCode.USAGE


async def _changed(settings: Settings, changes: Sequence[BulkChange]) -> Sequence[Outcome]:
    async with reach_desk(settings, command="knowledge") as desk:
        return await desk.change(changes, who())
