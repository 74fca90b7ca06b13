"""`trivet config show | docs`."""

from __future__ import annotations

import json

import rich_click as click

from config.rendering import docs, show, values
from server.commands.options import common_options, options_of
from server.commands.setup import load


@click.group()
@common_options
def command() -> None:
    """Show the settings."""


@command.command("show")
@common_options
@click.pass_context
def show_command(context: click.Context) -> None:
    """Print every setting in force as TOML, and where it came from; secrets are masked."""
    options = options_of(context)
    loaded = load(options)
    if options.json:
        table = {
            key: {"value": value, "from": loaded.places.get(key, "default")}
            for key, value in values(loaded.settings).items()
        }
        click.echo(json.dumps({"file": str(loaded.file) if loaded.file else None, "settings": table}, indent=2))
    else:
        click.echo(f"# file: {loaded.file or 'none'}\n{show(loaded)}", nl=False)


@command.command("docs")
@common_options
@click.pass_context
def docs_command(context: click.Context) -> None:
    """Print the reference of all settings in Markdown."""
    text = docs()
    click.echo(json.dumps({"markdown": text}) if options_of(context).json else text, nl=options_of(context).json)
