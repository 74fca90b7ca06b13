"""Errors to exit codes, in one place; scripts rely on these numbers."""

from __future__ import annotations

from enum import IntEnum

from graph.errors import (
    DependencyError,
    InputError,
    SettingsError,
    StoreBusyError,
    StoreVersionError,
    TrivetError,
)


class ExitCode(IntEnum):
    """What a command ends with."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    """A wrong command line, or input that cannot be used."""
    SETTINGS = 3
    DEPENDENCY = 4
    """A service or the store's holder is in the way; trying again later may work."""
    PARTIAL = 5
    """Done, but something was left out: it is named on stderr."""
    INTERRUPTED = 130
    """Ctrl-C, as shells count it: 128 + SIGINT."""
    BROKEN_PIPE = 141
    """The reader of our output went away: 128 + SIGPIPE."""


CODES: tuple[tuple[type[TrivetError], ExitCode], ...] = (
    (SettingsError, ExitCode.SETTINGS),
    (StoreVersionError, ExitCode.SETTINGS),
    (StoreBusyError, ExitCode.DEPENDENCY),
    (DependencyError, ExitCode.DEPENDENCY),
    (InputError, ExitCode.USAGE),
    (TrivetError, ExitCode.FAILURE),
)
"""The first that fits counts, so special cases stand before general ones."""


def exit_code(error: TrivetError) -> ExitCode:
    return next(code for kind, code in CODES if isinstance(error, kind))
