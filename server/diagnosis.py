"""Checks of everything the configuration needs; each fault comes with the command that mends it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from config.domains import BLOCKED, load_domains
from config.loading import SettingsProblem
from config.personas import load_personas
from config.settings import Settings
from graph.errors import TrivetError
from graph.home import HomeLock
from graph.recognizer import MODELS, Recognizer
from server.check import Check, fault, good
from server.service_checks import SAMPLE, check_services

LOW_SPACE = 500_000_000
"""Bytes; a batch of vectors and SQLite's log need far less, but a disk this full fills up soon."""


async def diagnose(settings: Settings) -> Sequence[Check]:
    """In an order in which a later fault may follow from an earlier one."""
    return [
        check_home(settings.home),
        check_space(settings.home),
        check_sqlite(),
        check_lock(settings.home),
        *check_names(settings),
        check_personas(settings),
        check_domains(settings),
        check_server(settings),
        *await check_services(settings),
    ]


def check_home(home: Path) -> Check:
    existing = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    if not existing.is_dir():
        return fault(
            "home", f"{existing} is a file, not a folder", f"mv {quote(str(existing))} {quote(str(existing))}.old"
        )
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        user = os.environ.get("USER") or str(os.getuid())
        return fault(
            "home", f"{existing} is not writable ({error.strerror})", f"sudo chown -R {user} {quote(str(existing))}"
        )
    return good("home", f"{home} is writable" if home.exists() else f"{home} will be made")


def check_space(home: Path) -> Check:
    existing = next(folder for folder in (home, *home.absolute().parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free / 1e9:.1f} GB free"
    if free < LOW_SPACE:
        return fault("disk", text, f"du -xh {quote(str(existing))} | sort -h | tail")
    return good("disk", text)


def check_sqlite() -> Check:
    """The state store needs full-text search."""
    with sqlite3.connect(":memory:") as connection:
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    if "ENABLE_FTS5" not in options:
        return fault(
            "sqlite", f"SQLite {sqlite3.sqlite_version} has no FTS5", "uv python install 3.12 && uv sync -p 3.12"
        )
    return good("sqlite", f"{sqlite3.sqlite_version} with FTS5")


def check_lock(home: Path) -> Check:
    holder = HomeLock.holder(home)
    return good("lock", f"held by {holder}" if holder else "free")


def check_names(settings: Settings) -> Iterator[Check]:
    """spaCy's models for the configured languages."""
    try:
        recognizer = Recognizer(settings.ingestion.ner_languages)
    except TrivetError as error:
        yield fault("names", str(error), "set ingestion.ner_languages to a list of " + ", ".join(sorted(MODELS)))
        return
    for language in settings.ingestion.ner_languages:
        package = MODELS[language]
        if importlib.util.find_spec(package) is None:
            yield fault(
                f"names ({language})", f"{package} is not installed", f"uv pip install {package.replace('_', '-')}"
            )
        else:
            recognizer.names([SAMPLE], language)
            yield good(f"names ({language})", package)


def check_personas(settings: Settings) -> Check:
    try:
        personas = load_personas(settings.answer.persona_dir)
    except SettingsProblem as problem:
        return fault("personas", str(problem), "correct that file, or unset answer.persona_dir")
    if settings.answer.persona not in personas:
        known = ", ".join(sorted(personas))
        return fault(
            "personas", f"there is no persona “{settings.answer.persona}”", f"set answer.persona to one of {known}"
        )
    return good("personas", ", ".join(sorted(personas)))


def check_domains(settings: Settings) -> Check:
    try:
        rules = load_domains(settings.web.domains_path).rules.values()
    except SettingsProblem as problem:
        return fault("domains", str(problem), "correct that file, or unset web.domains_path")
    blocked = sum(rule.category == BLOCKED for rule in rules)
    return good("domains", f"{len(rules) - blocked} with a category, {blocked} blocked")


def check_server(settings: Settings) -> Check:
    """Whether `trivet serve` could listen."""
    server = settings.server
    if server.host not in {"127.0.0.1", "::1", "localhost"} and not server.api_key.get_secret_value():
        return fault(
            "server", f"{server.host} is not loopback and there is no API key", "export TRIVET_SERVER__API_KEY=…"
        )
    holder = HomeLock.holder(settings.home)
    if holder is not None and holder.url:
        return good("server", f"runs at {holder.url}")
    try:
        with socket.create_server((server.host, server.port)):
            pass
    except OSError as error:
        return fault(
            "server", f"{server.host}:{server.port}: {error.strerror}", f"trivet serve --port {server.port + 1}"
        )
    return good("server", f"can listen on {server.host}:{server.port}")
