"""Questions to a person at a terminal: one letter is an answer."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import rich_click as click

from server.commands.sentences import clean


def check_terminal(what: str) -> None:
    """Raises `UsageError` where nobody can be asked."""
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what} asks a person, so it needs a terminal.")


def ask(choices: Mapping[str, str]) -> str:
    """A key of `choices`; asked again for anything else. Raises `Abort` at the end of the input."""
    shown = ", ".join(f"[{key}] {words}" for key, words in choices.items())
    while True:
        answer: str = click.prompt(shown, prompt_suffix="? ", default="", show_default=False, err=True)
        key = answer.strip().lower()[:1]
        if key in choices:
            return key


def ask_line(name: str, before: str) -> str:
    """Another text; nothing typed leaves what there was."""
    answer: str = click.prompt(f"{name} (Enter leaves it)", default="", show_default=False, err=True)
    return clean(answer.strip()) or before
