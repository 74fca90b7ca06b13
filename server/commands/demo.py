"""`trivet demo`: the whole way from a wiki to cited answers, on a wiki that is shipped."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from pathlib import Path

import msgspec
import rich_click as click

import ingestion
from config.settings import Settings
from ingestion.ingest import ingest
from ingestion.report import IngestReport
from ingestion.sources.detect import open_source
from server.commands.answers import print_answer
from server.commands.local import LocalKnowledge, opened
from server.commands.options import common_options, options_of
from server.commands.progress import ingestion_progress
from server.commands.reports import print_report
from server.commands.setup import settings_of
from server.commands.terminal import Printer, fields_of, print_json
from server.http.views import QueryRequest, QueryResponse

SAMPLE = Path(ingestion.__file__).with_name("sample_wiki")
QUESTIONS = (
    "How many steps lead to the lamp room of Carrow Light?",
    "What food is served at weddings in the village where Carrow Light's first keeper grew up?",
    "Who won the chess championship of Hollin in 1996?",
)
"""One page answers the first; the second needs two links (lighthouse → keeper → village); the third has no answer."""

PATIENT_SECONDS = 30.0


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """One question with its answer, for `--json`."""

    question: str
    response: QueryResponse


@click.command()
@common_options
@click.pass_context
def command(context: click.Context) -> None:
    """Ingest a small sample wiki and answer three questions from it, with citations.

    It is kept apart from your own: in the folder `demo` of the home folder, or in --home.
    """
    options = options_of(context)
    settings = settings_of(options)
    home = settings.home if options.home else settings.home / "demo"
    report, answered = asyncio.run(_run(patient(settings, home)))
    if options.json:
        print_json({"home": str(home), "report": fields_of(report), "answers": answered})
    else:
        _print(home, report, answered, Printer())


def patient(settings: Settings, home: Path) -> Settings:
    """With deadlines that a machine keeps that has just begun to work, so that the demo shows every leg."""
    search = settings.search.model_copy(
        update={
            "vector_seconds": max(settings.search.vector_seconds, PATIENT_SECONDS),
            "graph_seconds": max(settings.search.graph_seconds, PATIENT_SECONDS),
        }
    )
    budget = max(settings.rerank.budget_seconds, PATIENT_SECONDS)
    rerank = settings.rerank.model_copy(update={"budget_seconds": budget})
    return settings.model_copy(update={"home": home, "search": search, "rerank": rerank})


async def _run(settings: Settings) -> tuple[IngestReport, list[Answered]]:
    source = open_source(SAMPLE, name="hollin", kind=None, base_url=None)
    async with opened(settings, command="demo") as backends:
        with ingestion_progress(source.name) as show:
            report = await ingest(source, backends.knowledge, settings.ingestion, prune=True, on_progress=show)
        knowledge = LocalKnowledge(backends)
        requests = [QueryRequest(question=question, explain=True) for question in QUESTIONS]
        answers = [await knowledge.ask(request) for request in requests]
    return report, [
        Answered(question=question, response=answer) for question, answer in zip(QUESTIONS, answers, strict=True)
    ]


def _print(home: Path, report: IngestReport, answered: list[Answered], out: Printer) -> None:
    out.line(("The sample wiki of a small island, read and stored", "bold"))
    print_report(report, out)
    for number, item in enumerate(answered, start=1):
        out.line()
        out.line((f"Question {number}: {item.question}", "bold green"))
        out.line()
        print_answer(item.response, out, explain=False)
    trivet, here = _how_called(), shlex.quote(str(home))
    out.heading("Next")
    out.pairs(
        (
            ("ask more", f'{trivet} ask --home {here} "Who kept the light before Tomas Reve?"'),
            ("serve it", f"{trivet} serve --home {here}"),
            ("your wiki", f"{trivet} ingest PATH, then {trivet} ask QUESTION"),
        )
    )


def _how_called() -> str:
    """How this command was called, so that what is printed can be pasted."""
    relative = os.path.relpath(sys.argv[0])
    return "trivet" if relative.startswith("..") or not Path(relative).is_file() else relative
