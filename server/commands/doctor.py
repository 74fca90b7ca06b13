"""`trivet doctor`."""

from __future__ import annotations

import asyncio

import rich_click as click

from server.commands.options import common_options, options_of
from server.commands.setup import load
from server.commands.terminal import Printer, print_json
from server.diagnosis import diagnose
from server.exit_codes import ExitCode


@click.command()
@common_options
@click.pass_context
def command(context: click.Context) -> ExitCode:
    """Check everything the configuration needs, and print the command that mends each fault.

    Exit code 1 means that there is at least one.
    """
    options = options_of(context)
    loaded = load(options)
    checks = asyncio.run(diagnose(loaded.settings))
    healthy = all(check.ok for check in checks)
    if options.json:
        print_json({"ok": healthy, "settings_file": str(loaded.file or ""), "checks": checks})
        return ExitCode.OK if healthy else ExitCode.FAILURE
    out = Printer()
    out.line(f"settings file: {loaded.file or 'none'}")
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = ("ok    ", "green") if check.ok else ("FAULT ", "bold red")
        out.line(mark, f"{check.name:<{width}}  {check.detail}")
        if check.fix:
            out.line(("fix: ", "yellow"), check.fix, indent=6)
    return ExitCode.OK if healthy else ExitCode.FAILURE
