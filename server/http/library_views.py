"""The bodies of `/api/sources`, `/api/pages` and `/api/jobs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from graph.jobs import Job, JobState
from graph.registry import RegisteredSource

Name = Annotated[str, Meta(max_length=64, pattern=r"^[\w.-]+$", examples=["handbook"])]
Key = Annotated[str, Meta(min_length=1, max_length=500)]
Text = Annotated[str, Meta(max_length=2_000)]


class SourceRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A wiki to read and to follow."""

    location: Annotated[str, Meta(min_length=1, max_length=2_000, examples=["https://wiki.example/"])]
    """A URL, or a path on the server's machine."""
    name: Annotated[str, Meta(max_length=64)] = ""
    kind: Annotated[str, Meta(max_length=64)] = ""
    base_url: Text = ""
    options: dict[str, str] = {}
    moved: bool = False
    prune: bool = True


class SyncRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to look for changes."""

    whole: bool = False
    """Read all of it, whatever its feed says."""
    failed: bool = False
    """Only the pages that could not be read before."""


class PushedPage(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A page that is given, not fetched."""

    key: Key
    """Unique in its source, and the same when the page is given again."""
    title: Annotated[str, Meta(min_length=1, max_length=1_000)]
    text: str
    format: Literal["markdown", "text"] = "markdown"
    url: Text = ""
    language: Annotated[str, Meta(max_length=3)] = ""
    modified: Annotated[str, Meta(max_length=40)] = ""
    aliases: Annotated[Sequence[Key], Meta(max_length=100)] = ()
    categories: Annotated[Sequence[Key], Meta(max_length=100)] = ()


class PagesRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages of one source to store, and keys of those to remove."""

    source: Name
    pages: Annotated[Sequence[PushedPage], Meta(max_length=1_000)] = ()
    gone: Annotated[Sequence[Key], Meta(max_length=10_000)] = ()


class SourceView(Struct, frozen=True, kw_only=True):
    """A source that is followed."""

    name: str
    kind: str
    location: str
    base_url: str
    added: str
    last_run: str
    last_error: str


class JobView(Struct, frozen=True, kw_only=True):
    """A piece of work; `result` is the report of the ingestion, or of the research on `topics` (slugs; none: the
    queue)."""

    id: str
    kind: str
    source: str
    topics: tuple[str, ...]
    state: JobState
    progress: Mapping[str, Any]
    result: Mapping[str, Any]
    error: str
    tries: int
    cancelling: bool
    created: str
    started: str
    ended: str


class Registered(Struct, frozen=True, kw_only=True):
    """A source, and the job that reads it."""

    source: SourceView
    job: JobView


def view_source(source: RegisteredSource) -> SourceView:
    """Without its options, which may hold a password."""
    return SourceView(
        name=source.name,
        kind=source.kind,
        location=source.location,
        base_url=source.base_url,
        added=source.added,
        last_run=source.last_run,
        last_error=source.last_error,
    )


def view_job(job: Job) -> JobView:
    return JobView(
        id=job.id,
        kind=job.kind,
        source=str(job.payload.get("source", "")),
        topics=tuple(job.payload.get("topics", ())),
        state=job.state,
        progress=job.progress,
        result=job.result,
        error=job.error,
        tries=job.tries,
        cancelling=job.cancelling,
        created=job.created,
        started=job.started,
        ended=job.ended,
    )
