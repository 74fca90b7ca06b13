"""`trivet write TOPIC`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import rich_click as click

from config.settings import Settings
from graph.errors import InputError
from server.commands.options import common_options, options_of
from server.commands.reach_writing import reach_writing
from server.commands.sentences import clean, sentence
from server.commands.setup import settings_of
from server.commands.terminal import fields_of, print_json
from server.commands.written_file import check_output, write_output
from server.exit_codes import ExitCode
from server.focus import KINDS, Kind
from server.http.writing_views import PieceFormat, WriteRequest, WritingView
from server.writing.model import Progress
from server.writing.plan import read_outline

OUTLINE_BYTES = 1_000_000


@click.command()
@click.argument("topic", required=False, default="")
@click.option("--kind", type=click.Choice(KINDS), default="explanation", help="Which sections it has.")
@click.option("--outline", type=click.Path(path_type=Path), metavar="FILE", help="Its headings, one on each line.")
@click.option("--persona", default="", metavar="NAME", help="Who writes, instead of the configured one.")
@click.option("--sequential", is_flag=True, help="One section after the other, each knowing all before it.")
@click.option("--no-web", is_flag=True, help="Write from what is kept alone.")
@click.option("--format", "form", type=click.Choice(get_args(PieceFormat)), default="md", help="Of the piece.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Instead of stdout.")
@click.option("--force", is_flag=True, help="Overwrite the file.")
@click.option("--resume", default="", metavar="ID", help="Go on with a piece that is not finished; without TOPIC.")
@common_options
@click.pass_context
def command(
    context: click.Context,
    topic: str,
    kind: Kind,
    outline: Path | None,
    persona: str,
    sequential: bool,
    no_web: bool,
    form: PieceFormat,
    output: Path | None,
    force: bool,
    resume: str,
) -> ExitCode:
    """Write a long piece about a topic, section by section, each from evidence of its own; every claim is cited.

    A running server that holds the store writes it; otherwise the store is opened. Exit code 5 means that sections are
    missing: what there is was written and is kept, and `--resume ID` goes on with it.
    """
    if bool(topic) == bool(resume):
        raise click.UsageError("Name a topic to write about, or a piece to go on with by --resume; not both.")
    if output is not None:
        check_output(output, force=force)
    headings = read_outline(_read(outline)) if outline else ()
    request = WriteRequest(
        topic=topic, kind=kind, outline=headings, persona=persona, sequential=sequential, web=not no_web
    )
    options = options_of(context)
    view, text = asyncio.run(_write(settings_of(options), request, resume, form))
    if output is not None:
        write_output(output, text, force=force)
    if options.json:
        print_json(fields_of(view, output=str(output) if output else None))
    elif output is None:
        sys.stdout.write(text)
    if view.state == "done":
        return ExitCode.OK
    _say(f"The piece is {view.state}: {view.reason}; `trivet write --resume {view.id}` goes on with it")
    return ExitCode.PARTIAL


def _read(outline: Path) -> str:
    try:
        with outline.open("rb") as file:
            given = file.read(OUTLINE_BYTES + 1)
        if len(given) > OUTLINE_BYTES:
            raise InputError(f"The outline {outline} is larger than {OUTLINE_BYTES:,} bytes; write one heading a line.")
        return given.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or "it is not UTF-8 text"
        raise InputError(f"The outline {str(outline)[:200]!r} cannot be read: {why}.") from error


async def _write(settings: Settings, request: WriteRequest, resume: str, form: PieceFormat) -> tuple[WritingView, str]:
    async with reach_writing(settings) as writing:
        piece_id = resume or await writing.begin(request)
        _say(f"piece {piece_id}")
        view = await writing.write(piece_id, _lines(), resume=bool(resume))
        return view, await writing.text(piece_id, form)


def _lines() -> Callable[[Progress], None]:
    """One line on stderr for each new stage of a section."""
    last: list[Progress] = []

    def show(progress: Progress) -> None:
        if last != [progress]:
            last[:] = [progress]
            heading = sentence(progress.heading)
            _say(f"{progress.done} of {progress.total} sections; {progress.stage} {progress.section}: {heading}")

    return show


def _say(words: str) -> None:
    print(clean(words), file=sys.stderr, flush=True)
