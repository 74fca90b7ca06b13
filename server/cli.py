"""The `trivet` command: what it is made of, and what becomes of errors.

Data goes to stdout; progress and errors go to stderr, an error as one sentence. With `--json` an error is also
an object on stdout: `{"error": {"kind", "message"}}`. Exit codes are in `server/exit_codes.py`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType

import rich_click as click

from config.given import SettingsProblem
from graph.errors import SettingsError, TrivetError
from server.commands.options import common_options
from server.commands.sentences import sentence
from server.exit_codes import ExitCode, exit_code
from server.memory import limit_arenas

COMMANDS = {
    "demo": "Ingest a small sample wiki and answer three questions from it.",
    "ingest": "Read a wiki into the store; what has not changed is left alone.",
    "sync": "Bring the store up to date with its sources.",
    "sources": "List the wikis that are followed.",
    "research": "Research topics on the web.",
    "knowledge": "Decide which facts that research found are kept.",
    "ask": "Answer a question, with citations.",
    "write": "Write a long piece about a topic, every claim cited.",
    "search": "Show what would be answered from, without an answer.",
    "serve": "Serve the HTTP API.",
    "worker": "Do the jobs that a server leaves to workers.",
    "status": "Say what is in the store and who holds it.",
    "verify": "Compare manifest, vectors and graph.",
    "migrate": "Move vectors and graph to servers, or back.",
    "doctor": "Check everything the configuration needs.",
    "eval": "Measure the search on a BEIR-style folder.",
    "calibrate": "Find the models' thresholds from labelled questions.",
    "config": "Show the settings.",
    "domains": "Say which web domains are trusted and which are blocked.",
}
"""Each is `server.commands.<name>.command`, imported only when it is called: the models take seconds to import."""


class LazyGroup(click.RichGroup):
    """A group that knows its commands' one-line help and imports a command when it is called."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name in COMMANDS:
            command = importlib.import_module(f"server.commands.{name}").command
        return name, command, rest

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return ExitCode.BROKEN_PIPE


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="trivet", message="trivet %(version)s")
@common_options
def cli() -> None:
    """Answer questions from your own wiki, every claim cited.

    Start with `trivet demo`, or `trivet ingest PATH` and then `trivet ask QUESTION`.
    """


for _name, _summary in COMMANDS.items():
    cli.add_command(click.RichCommand(name=_name, help=_summary))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and exit. Anything unforeseen goes through `report_fault`."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    limit_arenas()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    if "--debug" not in given:
        sys.excepthook = report_fault
    code = run(given)
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = ExitCode.BROKEN_PIPE
    if code == ExitCode.BROKEN_PIPE:
        # Otherwise the interpreter complains when it flushes stdout on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """The exit code of one command line."""
    as_json = "--json" in arguments
    try:
        result = cli.main(arguments, prog_name="trivet", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        print_error("usage", error.format_message(), as_json=as_json)
        return error.exit_code
    except (TrivetError, SettingsProblem) as error:
        if "--debug" in arguments:
            traceback.print_exception(error)
        # The settings know nothing of our errors: they are a layer below.
        known = error if isinstance(error, TrivetError) else SettingsError(str(error))
        print(f"trivet: {sentence(str(known))}", file=sys.stderr)
        print_error(known.kind, str(known), as_json=as_json)
        return exit_code(known)
    except (click.Abort, KeyboardInterrupt):
        print("trivet: stopped.", file=sys.stderr)
        return ExitCode.INTERRUPTED
    return result if isinstance(result, int) else ExitCode.OK


def print_error(kind: str, message: str, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"error": {"kind": kind, "message": sentence(message)}}, ensure_ascii=False))


def report_fault(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
    """The hook for exceptions that nobody foresaw: a sentence, not a traceback; Python then exits with 1."""
    text = sentence(f"{kind.__name__}: {error}" if str(error) else kind.__name__)
    print(f"trivet: something unforeseen went wrong ({text}); --debug shows where.", file=sys.stderr)
    print_error("fault", text, as_json="--json" in sys.argv)


if __name__ == "__main__":
    main()
