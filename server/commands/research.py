"""`trivet research`."""

from __future__ import annotations

import asyncio
from typing import get_args

import rich_click as click

from config.settings import Settings
from graph.errors import TrivetError
from graph.research import TopicState
from server.commands.options import common_options, options_of
from server.commands.progress import research_progress
from server.commands.reach_research import ReachedDesk, reach_cabinet, reach_desk
from server.commands.research_printing import print_run, print_thin, print_topic, print_topics
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.commands.terminal_questions import ask, check_terminal
from server.exit_codes import ExitCode
from server.http.research_views import RunRequest, TopicFileView, TopicRequest, TopicView
from server.research.plan import WhenThin
from server.research.report import RunReport, TopicReport
from server.research.topics import Kind

CHOICES = {
    "c": "continue with what there is",
    "r": "retry",
    "d": "deep research",
    "x": "delete the topic",
    "q": "leave it",
}


@click.group()
@common_options
def command() -> None:
    """Research topics on the web, for a person to approve what was found.

    Topics wait in a queue; `run` works through it. It needs a SearXNG (web.searxng_url); a language model (llm.*) makes
    it better. What was found is reviewed with `trivet knowledge review`.
    """


@command.command("add")
@click.argument("title")
@click.option("--category", default="general", metavar="NAME", help="Whose facts stand together, like history.")
@click.option("--focus", default="", metavar="TEXT", help="What of it matters, in a sentence.")
@click.option("--kind", type=click.Choice(get_args(Kind)), default="research", help="What is wanted of it.")
@click.option("--slug", default="", metavar="NAME", help="What to call it; by default it is made from the title.")
@common_options
@click.pass_context
def add(context: click.Context, title: str, category: str, focus: str, kind: Kind, slug: str) -> None:
    """Put a topic into the queue."""
    options = options_of(context)
    request = TopicRequest(title=title, category=category, focus=focus, kind=kind, slug=slug)
    topic = asyncio.run(_add(settings_of(options), request))
    if options.json:
        print_json(topic)
    else:
        Printer().line("added ", (topic.slug, "bold"), f"; `trivet research run {topic.slug}` researches it")


async def _add(settings: Settings, request: TopicRequest) -> TopicView:
    async with reach_cabinet(settings) as cabinet:
        return await cabinet.add(request)


@command.command("list")
@click.option("--state", type=click.Choice([state.value for state in TopicState]), help="Only those in it.")
@common_options
@click.pass_context
def list_command(context: click.Context, state: str | None) -> None:
    """List the topics, the oldest first."""
    options = options_of(context)

    async def read() -> list[TopicView]:
        async with reach_cabinet(settings_of(options)) as cabinet:
            return list(await cabinet.topics(TopicState(state) if state else None))

    topics = asyncio.run(read())
    if options.json:
        print_json({"topics": topics})
    else:
        print_topics(topics, Printer())


@command.command("show")
@click.argument("slug")
@common_options
@click.pass_context
def show(context: click.Context, slug: str) -> None:
    """Say all that is known of a topic: its state and why, its history, pages and facts."""
    options = options_of(context)

    async def read() -> TopicFileView:
        async with reach_cabinet(settings_of(options)) as cabinet:
            return await cabinet.topic(slug)

    file = asyncio.run(read())
    if options.json:
        print_json(file)
    else:
        print_topic(file, Printer())


@command.command("run")
@click.argument("slugs", metavar="[SLUG]...", nargs=-1)
@click.option("--deep", is_flag=True, help="Deep research in any case, one round at least.")
@click.option("--interactive", is_flag=True, help="Ask what to do where too little was found.")
@click.option("--minutes", type=click.FloatRange(0, 10_000), default=0.0, metavar="N", help="For all of them.")
@common_options
@click.pass_context
def run(context: click.Context, slugs: tuple[str, ...], deep: bool, interactive: bool, minutes: float) -> ExitCode:
    """Work through the queue, or research the topics that are named.

    Topics of which too little is found get rounds of deep research; what is still too little then is left without
    facts, as insufficient_research. A run that was stopped or killed goes on where it was. While a server holds the
    store, it does the work. Exit code 5 means that some topics could not be researched; they are named.
    """
    when_thin = WhenThin.STOP if interactive else WhenThin.DEEPEN
    request = RunRequest(topics=slugs, deep=deep, when_thin=when_thin, minutes=minutes)
    return _researched(context, request, interactive=interactive)


@command.command("deep")
@click.argument("slug")
@click.option("--minutes", type=click.FloatRange(0, 10_000), default=0.0, metavar="N", help="For all rounds.")
@common_options
@click.pass_context
def deep(context: click.Context, slug: str, minutes: float) -> ExitCode:
    """Ask what is missing of a topic, and search for that."""
    return _researched(context, RunRequest(topics=(slug,), deep=True, minutes=minutes), interactive=False)


def _researched(context: click.Context, request: RunRequest, *, interactive: bool) -> ExitCode:
    options = options_of(context)
    if interactive:
        check_terminal("--interactive")
    report = asyncio.run(_run(settings_of(options), request, interactive=interactive))
    if options.json:
        print_json(report)
    else:
        print_run(report, Printer())
    return ExitCode.PARTIAL if report.partial else ExitCode.OK


async def _run(settings: Settings, request: RunRequest, *, interactive: bool) -> RunReport:
    async with reach_desk(settings, command="research run") as desk:
        with research_progress() as show:
            report = await desk.run(request, show)
        if not interactive:
            return report
        done = [await _asked(desk, topic, request.minutes) for topic in report.topics]
        return RunReport(
            topics=tuple(topic for topic in done if topic is not None),
            not_begun=report.not_begun,
            seconds=report.seconds,
        )


async def _asked(desk: ReachedDesk, topic: TopicReport, minutes: float) -> TopicReport | None:
    """What a person makes of a topic of which too little was found; None: it is deleted."""
    out = Printer(to_stderr=True)
    while topic.state in (TopicState.THIN, TopicState.INSUFFICIENT):
        print_thin(topic, out)
        thin = topic.state is TopicState.THIN
        answer = ask({key: words for key, words in CHOICES.items() if thin or key != "c"})
        if answer == "q":
            return topic
        if answer == "x":
            await desk.delete(topic.slug)
            return None
        topic = await _again(desk, topic, answer, minutes)
    return topic


async def _again(desk: ReachedDesk, topic: TopicReport, answer: str, minutes: float) -> TopicReport:
    request = RunRequest(
        topics=(topic.slug,),
        deep=answer == "d",
        when_thin=WhenThin.ACCEPT if answer == "c" else WhenThin.STOP,
        minutes=minutes,
    )
    with research_progress() as show:
        report = await desk.run(request, show)
    return report.topics[0] if report.topics else topic


@command.command("delete")
@click.argument("slugs", metavar="SLUG...", nargs=-1, required=True)
@common_options
@click.pass_context
def delete(context: click.Context, slugs: tuple[str, ...]) -> ExitCode:
    """Delete topics with what was found for them; facts that were approved stay."""
    options = options_of(context)
    failed = asyncio.run(_delete(settings_of(options), slugs))
    if options.json:
        errors = {slug: {"kind": error.kind, "message": str(error)} for slug, error in failed.items()}
        print_json({"deleted": [slug for slug in slugs if slug not in failed], "failed": errors})
    for slug, error in failed.items():
        Printer(to_stderr=True).line((f"{slug}: ", "bold red"), str(error))
    if not options.json:
        Printer().line(f"deleted {len(set(slugs)) - len(failed)} of {len(set(slugs))} topics")
    return ExitCode.OK if not failed else ExitCode.PARTIAL if len(failed) < len(set(slugs)) else ExitCode.USAGE


async def _delete(settings: Settings, slugs: tuple[str, ...]) -> dict[str, TrivetError]:
    failed: dict[str, TrivetError] = {}
    async with reach_desk(settings, command="research delete") as desk:
        for slug in dict.fromkeys(slugs):
            try:
                await desk.delete(slug)
            except TrivetError as error:
                failed[slug] = error
    return failed
