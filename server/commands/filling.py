"""Filling the store from the command line: here, or as a job of the server that holds it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import rich_click as click

from config.settings import Settings
from graph.errors import DependencyFaultError, StoreBusyError, TrivetError
from graph.home import HomeLock
from graph.jobs import JobState
from ingestion.report import IngestReport, Progress
from ingestion.sources.detect import recognise
from ingestion.sync import register
from server.commands.local import opened_library
from server.commands.progress import ingestion_progress
from server.commands.remote import RemoteKnowledge, open_remote
from server.http.library_views import JobView, SourceRequest, SyncRequest


def pairs(given: Sequence[str]) -> dict[str, str]:
    """`key=value`, as `--option` takes it."""
    found = {}
    for pair in given:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"“{pair}” is not key=value, like strategy=title.", param_hint="--option")
        found[key.strip()] = value.strip()
    return found


def serving_url(settings: Settings) -> str:
    """Where the server is that holds the store; "" where nobody does, or somebody who cannot be asked."""
    holder = HomeLock.holder(settings.home)
    return holder.url if holder is not None else ""


def _place(location: str) -> str:
    """The server may stand in another folder."""
    return location if "://" in location else str(Path(location).absolute())


async def read_in(
    settings: Settings,
    location: str,
    *,
    name: str | None,
    kind: str | None,
    base_url: str | None,
    options: Mapping[str, str],
    moved: bool,
    prune: bool,
    rebuild: bool,
) -> IngestReport:
    """Register a wiki and read it."""
    url = serving_url(settings)
    if url and rebuild:
        raise StoreBusyError(f"The store is served at {url}, and a rebuild empties it; stop the server first.")
    if url:
        request = SourceRequest(
            location=_place(location),
            name=name or "",
            kind=kind or "",
            base_url=base_url or "",
            options=dict(options),
            moved=moved,
            prune=prune,
        )
        async with open_remote(url, settings) as remote:
            return _read(await _waited(remote, await remote.add(request)))
    found = await asyncio.to_thread(
        lambda: recognise(location, name=name, kind=kind, base_url=base_url, options=options)
    )
    async with opened_library(settings, command="ingest", rebuild=rebuild) as library:
        source = register(library.registry, found, moved=moved)
        with ingestion_progress(source.name) as show:
            return _read(await library.follow(source, whole=True, prune=prune, on_progress=show))


def _read(report: IngestReport | None) -> IngestReport:
    assert report is not None, "what was recognised is read, not pushed"
    return report


async def follow_all(
    settings: Settings, names: Sequence[str], *, whole: bool = False, failed: bool = False
) -> dict[str, IngestReport | TrivetError | None]:
    """Look for changes in these sources, or in all: a report for each, why it could not be read, or None where
    there was nothing to do. One that fails does not hold up the others."""
    url = serving_url(settings)
    if url:
        async with open_remote(url, settings) as remote:
            return await _follow_there(remote, names, whole=whole, failed=failed)
    async with opened_library(settings, command="sync") as library:
        sources = [library.registered(name) for name in names] or library.registry.sources()
        done: dict[str, IngestReport | TrivetError | None] = {}
        for source in sources:
            try:
                with ingestion_progress(source.name) as show:
                    if failed:
                        done[source.name] = await library.retry(source, on_progress=show)
                    else:
                        done[source.name] = await library.follow(source, whole=whole, prune=True, on_progress=show)
            except TrivetError as error:
                done[source.name] = error
        return done


async def _follow_there(
    remote: RemoteKnowledge, names: Sequence[str], *, whole: bool, failed: bool
) -> dict[str, IngestReport | TrivetError | None]:
    wanted = list(names) or [source.name for source in await remote.sources()]
    done: dict[str, IngestReport | TrivetError | None] = {}
    for name in wanted:
        try:
            job = await remote.sync(name, SyncRequest(whole=whole, failed=failed))
            done[name] = await _waited(remote, job)
        except TrivetError as error:
            done[name] = error
    return done


async def _waited(remote: RemoteKnowledge, job: JobView) -> IngestReport | None:
    with ingestion_progress(job.source) as show:
        ended = await remote.finished(job, lambda progress: show(msgspec.convert(progress, Progress)))
    if ended.state is JobState.DONE:
        return msgspec.convert(ended.result, IngestReport) if ended.result else None
    why = ended.error or f"the job was {ended.state.value}"
    raise DependencyFaultError(f"The server could not read {job.source!r}: {why}", dependency="server")
