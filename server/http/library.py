"""`/api/sources`, `/api/pages` and `/api/jobs`: filling the store while it is served."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Controller, delete, get, post
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter
from litestar.response import Stream

from graph.errors import NotFoundError
from server.http.event_stream import MEDIA_TYPE, encoded, event_stream, named_event
from server.http.librarian import Librarian
from server.http.library_views import (
    JobView,
    PagesRequest,
    Registered,
    SourceRequest,
    SourceView,
    SyncRequest,
    view_job,
    view_source,
)
from server.http.query import PROBLEMS, problem_response
from server.http.requests import ApiRequest
from server.http.work import ServingDependency

UNKNOWN = {404: problem_response("There is no such source or job.")}
IdempotencyKey = Annotated[
    str, HeaderParameter(name="Idempotency-Key", max_length=200, description="Sent twice, it makes one job.")
]


class LibraryController(Controller):
    """Sources, pages and jobs. Every change is a job: the answer is 202, and `/api/jobs/{id}` says how it goes."""

    path = "/api"
    tags = ("sources",)

    @get("/sources", summary="What is followed", responses=PROBLEMS)
    async def sources(self, serving: ServingDependency) -> list[SourceView]:
        """By name."""
        return [view_source(source) for source in await librarian_of(serving).sources()]

    @post("/sources", status_code=202, summary="Read a wiki, and follow it", responses=PROBLEMS)
    async def add(
        self, data: JSONBody[SourceRequest], serving: ServingDependency, key: IdempotencyKey = ""
    ) -> Registered:
        """A URL, or a path on the server's machine. The kind is found by looking."""
        source, job = await librarian_of(serving).add(
            data.location,
            name=data.name,
            kind=data.kind,
            base_url=data.base_url,
            options=data.options,
            moved=data.moved,
            prune=data.prune,
            key=key,
        )
        return Registered(source=view_source(source), job=view_job(job))

    @post("/sources/{name:str}/sync", status_code=202, summary="Look for changes", responses=PROBLEMS | UNKNOWN)
    async def sync(
        self, name: FromPath[str], data: JSONBody[SyncRequest], serving: ServingDependency, key: IdempotencyKey = ""
    ) -> JobView:
        """From the source's own feed, where it has one that reaches back far enough."""
        librarian = librarian_of(serving)
        if data.failed:
            return view_job(await librarian.retry(name, key=key))
        return view_job(await librarian.sync(name, whole=data.whole, key=key))

    @delete(
        "/sources/{name:str}", status_code=202, summary="Forget a source and its pages", responses=PROBLEMS | UNKNOWN
    )
    async def forget(self, name: FromPath[str], serving: ServingDependency, key: IdempotencyKey = "") -> JobView:
        """Its pages are removed everywhere."""
        return view_job(await librarian_of(serving).forget(name, key=key))

    @post("/pages", status_code=202, summary="Store pages that are given", responses=PROBLEMS)
    async def push(self, data: JSONBody[PagesRequest], serving: ServingDependency, key: IdempotencyKey = "") -> JobView:
        """For a wiki that pushes its edits itself. A page of the same key is replaced."""
        pages = [msgspec.to_builtins(page) for page in data.pages]
        return view_job(await librarian_of(serving).push(data.source, pages, data.gone, key=key))

    @delete("/pages/{source:str}/{page:path}", status_code=202, summary="Remove a page", responses=PROBLEMS)
    async def remove(
        self, source: FromPath[str], page: FromPath[str], serving: ServingDependency, key: IdempotencyKey = ""
    ) -> JobView:
        """By its key. It comes back with the next whole reading of a source that still has it."""
        return view_job(await librarian_of(serving).push(source, [], [page.removeprefix("/")], key=key))

    @get("/jobs", summary="The newest jobs", responses=PROBLEMS)
    async def jobs(
        self, serving: ServingDependency, limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 100
    ) -> list[JobView]:
        """The newest first."""
        return [view_job(job) for job in await librarian_of(serving).jobs(limit)]

    @get("/jobs/{job_id:str}", summary="How a job goes", responses=PROBLEMS | UNKNOWN)
    async def job(self, job_id: FromPath[str], serving: ServingDependency) -> JobView:
        """Its state, progress and result."""
        return view_job(await librarian_of(serving).job(job_id))

    @delete("/jobs/{job_id:str}", status_code=202, summary="Cancel a job", responses=PROBLEMS | UNKNOWN)
    async def cancel(self, job_id: FromPath[str], serving: ServingDependency) -> JobView:
        """One that runs stops within seconds; what it has stored stays."""
        return view_job(await librarian_of(serving).cancel(job_id))

    @get(
        "/jobs/{job_id:str}/events",
        media_type=MEDIA_TYPE,
        summary="Follow a job",
        responses=PROBLEMS | UNKNOWN,
    )
    async def events(self, job_id: FromPath[str], request: ApiRequest, serving: ServingDependency) -> Stream:
        """Server-sent events: `job` whenever something has changed; the last one is of a job that has ended."""
        await librarian_of(serving).job(job_id)
        items = await serving.begin(request, librarian_of(serving).watch(job_id))
        return event_stream(encoded(items, lambda job: named_event("job", view_job(job))))


def librarian_of(serving: ServingDependency) -> Librarian:
    if serving.answerer.librarian is None:
        raise NotFoundError("This server only answers questions; its store is filled elsewhere.")
    return serving.answerer.librarian
