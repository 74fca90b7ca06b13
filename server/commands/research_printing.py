"""How topics, runs and facts are shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from graph.research import FactState
from server.commands.terminal import Printer
from server.http.research_views import FactView, Outcome, TopicFileView, TopicView
from server.research.report import RunReport, TopicReport

MOST_URLS = 5
"""Named of those left out for one reason; `--json` has all."""


def print_topics(topics: Sequence[TopicView], out: Printer) -> None:
    if not topics:
        out.line("no topics; `trivet research add TITLE` adds one")
    for topic in topics:
        out.line((topic.slug, "bold"), f"  {topic.state.value}  {topic.category}  {topic.title}")
        _print_reasons(topic.reasons, out)


def print_topic(file: TopicFileView, out: Printer) -> None:
    topic = file.topic
    out.line((topic.title, "bold"))
    facts = ", ".join(f"{file.facts[state]} {state.value}" for state in FactState)
    rows = [
        ("name", topic.slug),
        ("state", topic.state.value),
        ("reasons", "; ".join(topic.reasons)),
        ("category", topic.category),
        ("focus", topic.focus),
        ("kind", topic.kind),
        ("facts", facts),
    ]
    out.pairs([(name, value) for name, value in rows if value])
    out.heading("History")
    for change in file.history:
        out.line((f"{change.at}  ", "dim"), change.after, f"  {change.note}" if change.note else "")
    out.heading(f"Pages ({len(file.pages)})")
    for page in file.pages:
        out.line(page.title or page.url, f"  {page.passages} passages")
        out.line((page.url, "dim"), indent=4)
    if any(file.facts.values()):
        out.line()
        out.line(f"`trivet knowledge list --topic {topic.slug}` shows the facts.")


def print_run(report: RunReport, out: Printer) -> None:
    """One report at the end of a run."""
    if not report.topics and not report.not_begun:
        out.line("no topic waits; `trivet research add TITLE` adds one")
    for topic in report.topics:
        _print_outcome(topic, out)
    if report.not_begun:
        out.line(("no time for ", "bold red"), ", ".join(report.not_begun))
    if len(report.topics) > 1:
        out.line(f"{len(report.topics)} topics in {report.seconds:,.1f} s")


def _print_outcome(topic: TopicReport, out: Printer) -> None:
    state = topic.state.value if topic.state else "deleted"
    out.line((topic.slug, "bold"), f"  {state}")
    counts = f"{topic.pages} pages, {topic.chunks} chunks, {topic.facts} facts, {topic.seconds:,.1f} s"
    rounds = f", {topic.rounds} rounds of deep research" if topic.rounds else ""
    out.line(counts + rounds, indent=4)
    if topic.error:
        out.line(("failed: ", "bold red"), topic.error, indent=4)
    else:
        _print_reasons(topic.reasons, out)
    for note in topic.notes:
        out.line(note, indent=4)
    for reason, urls in topic.left_out.items():
        shown = urls[:MOST_URLS]
        left = topic.counts.get(reason, len(urls)) - len(shown)
        more = f" and {left} more" if left > 0 else ""
        out.line(f"left out, {reason}: ", (", ".join(shown) + more, "dim"), indent=4)
    if topic.facts and state == "review":
        out.line(f"`trivet knowledge review {topic.slug}` goes through the facts", indent=4)


def print_thin(topic: TopicReport, out: Printer) -> None:
    """Before a person is asked what to do."""
    out.line((topic.title or topic.slug, "bold"), f"  {topic.state.value if topic.state else ''}")
    _print_reasons(topic.reasons, out)
    out.line(f"{topic.pages} pages, {topic.chunks} chunks", indent=4)


def print_fact(fact: FactView, out: Printer) -> None:
    said = (
        (fact.state.value, True),
        ("evergreen", fact.evergreen),
        ("a sentence of the page", fact.extractive),
        (f"until {fact.expires}", bool(fact.expires)),
        (f"by {fact.changed_by}", bool(fact.changed_by)),
    )
    marks = [words for words, is_so in said if is_so]
    out.line((fact.text, "bold"))
    out.line(f"“{fact.quote}”", indent=4)
    out.line(f"{fact.title}  " if fact.title else "", (fact.url, "dim"), indent=4)
    out.line((f"{fact.id}  {fact.topic}  {', '.join(marks)}  support {fact.support:.2f}", "dim"), indent=4)


def print_outcomes(outcomes: Sequence[Outcome], out: Printer | None, err: Printer) -> None:
    """`out` is None where they are printed otherwise; refusals are said in any case."""
    for outcome in outcomes:
        if outcome.error is not None:
            err.line((f"{outcome.id}: ", "bold red"), outcome.error.message)
        elif out is not None:
            out.line(outcome.id, "  ", outcome.fact.state.value if outcome.fact else "deleted")
        if outcome.note:
            err.line((f"{outcome.id}: ", "bold yellow"), outcome.note)


def _print_reasons(reasons: Sequence[str], out: Printer) -> None:
    for reason in reasons:
        out.line(reason, indent=4)
