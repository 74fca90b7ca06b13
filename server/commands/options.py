"""The options that every command takes, before or after its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import rich_click as click

F = TypeVar("F", bound=Callable[..., object])


@dataclass(slots=True)
class Options:
    """Filled while the command line is parsed; what stands after the command's name wins."""

    home: Path | None = None
    config: Path | None = None
    sets: dict[str, str] = field(default_factory=dict)
    json: bool = False
    debug: bool = False


def options_of(context: click.Context) -> Options:
    return context.find_root().ensure_object(Options)


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value and parameter.name:
        setattr(options_of(context), parameter.name, value)


def _keep_sets(context: click.Context, _: click.Parameter, value: tuple[str, ...]) -> None:
    for pair in value:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"“{pair}” is not key=value, like llm.model=qwen3.", ctx=context)
        options_of(context).sets[key.strip()] = text.strip()


def common_options(function: F) -> F:
    """`--home`, `--config`, `--set`, `--json` and the hidden `--debug`."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


OPTIONS = (
    click.option(
        "--home",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        callback=_keep,
        expose_value=False,
        help="The store's folder; two wikis are two homes.",
    ),
    click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        callback=_keep,
        expose_value=False,
        help="The settings file to read instead of trivet.toml.",
    ),
    click.option(
        "--set",
        "sets",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_keep_sets,
        expose_value=False,
        help="Change one setting, like search.vector_limit=20; may be repeated.",
    ),
    click.option("--json", is_flag=True, callback=_keep, expose_value=False, help="Print one JSON document on stdout."),
    click.option("--debug", is_flag=True, hidden=True, callback=_keep, expose_value=False),
)
