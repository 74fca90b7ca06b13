"""`/api/topics` and `/api/research`: what is to be researched, and researching it."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, delete, get, post
from litestar.params import FromPath, JSONBody, QueryParameter

from graph.errors import NotFoundError
from graph.research import TopicState
from server.http.library import IdempotencyKey, librarian_of
from server.http.library_views import JobView, view_job
from server.http.query import PROBLEMS, problem_response
from server.http.research_views import (
    FinishedView,
    FinishRequest,
    ResearchRequest,
    RunRequest,
    TopicFileView,
    TopicRequest,
    TopicView,
    view_finished,
    view_topic,
    view_topic_file,
)
from server.http.work import ServingDependency
from server.research.desk import Desk
from server.research.plan import Plan

UNKNOWN_TOPIC = {404: problem_response("There is no such topic.")}
THERE_ALREADY = {409: problem_response("There is a topic of that name already.")}
WRONG_STATE = {409: problem_response("The topic is not at that point.")}
State = Annotated[TopicState | None, QueryParameter(name="state", description="Only those in it.")]


class ResearchController(Controller):
    """Topics. Research is a job: the answer is 202, and `/api/jobs/{id}` says how it goes."""

    path = "/api"
    tags = ("research",)

    @post("/topics", status_code=201, summary="Put a topic into the queue", responses=PROBLEMS | THERE_ALREADY)
    async def add(self, data: JSONBody[TopicRequest], serving: ServingDependency) -> TopicView:
        """Nothing is searched for yet."""
        return view_topic(await desk_of(serving).add(data.to_model()))

    @get("/topics", summary="Topics", responses=PROBLEMS)
    async def topics(self, serving: ServingDependency, topics_state: State = None) -> list[TopicView]:
        """The oldest first."""
        return [view_topic(topic) for topic in await desk_of(serving).topics(topics_state)]

    @get("/topics/{slug:str}", summary="All that is known of a topic", responses=PROBLEMS | UNKNOWN_TOPIC)
    async def topic(self, slug: FromPath[str], serving: ServingDependency) -> TopicFileView:
        """Its history, the pages that were read, and how many facts there are."""
        return view_topic_file(await desk_of(serving).file(slug))

    @delete("/topics/{slug:str}", summary="Delete a topic", responses=PROBLEMS | UNKNOWN_TOPIC)
    async def remove(self, slug: FromPath[str], serving: ServingDependency) -> None:
        """With what was found for it. Facts that were approved stay."""
        await desk_of(serving).delete(slug)

    @post("/topics/{slug:str}/research", status_code=202, summary="Research", responses=PROBLEMS | UNKNOWN_TOPIC)
    async def research(
        self,
        slug: FromPath[str],
        data: JSONBody[ResearchRequest],
        serving: ServingDependency,
        key: IdempotencyKey = "",
    ) -> JobView:
        """From the search to proposed facts; one that has ended is researched again."""
        return await _submitted(data.to_plan_of(slug), serving, key)

    @post("/topics/{slug:str}/deep", status_code=202, summary="Deep research", responses=PROBLEMS | UNKNOWN_TOPIC)
    async def deepen(
        self,
        slug: FromPath[str],
        data: JSONBody[ResearchRequest],
        serving: ServingDependency,
        key: IdempotencyKey = "",
    ) -> JobView:
        """Questions about what is missing, and searches for their answers; one round at least."""
        return await _submitted(data.to_plan_of(slug, deep=True), serving, key)

    @post(
        "/topics/{slug:str}/finish",
        status_code=200,
        summary="End a review",
        responses=PROBLEMS | UNKNOWN_TOPIC | WRONG_STATE,
    )
    async def finish(
        self, slug: FromPath[str], data: JSONBody[FinishRequest], serving: ServingDependency
    ) -> FinishedView:
        """What was kept stays; the topic's research passages are removed."""
        return view_finished(await desk_of(serving).finish(slug, by=data.by, force=data.force))

    @post("/research", status_code=202, summary="Work through the queue", responses=PROBLEMS | UNKNOWN_TOPIC)
    async def run(self, data: JSONBody[RunRequest], serving: ServingDependency, key: IdempotencyKey = "") -> JobView:
        """Or through the topics that are named. The job's result is a report on each."""
        return await _submitted(data.to_plan(), serving, key)


async def _submitted(plan: Plan, serving: ServingDependency, key: str) -> JobView:
    """Once it is known that the job could be done."""
    desk = desk_of(serving)
    desk.check_ready()
    for slug in plan.topics:
        await desk.topic(slug)
    return view_job(await librarian_of(serving).research(plan, key=key))


def desk_of(serving: ServingDependency) -> Desk:
    if serving.answerer.desk is None:
        raise NotFoundError("This server only answers questions; its research is done elsewhere.")
    return serving.answerer.desk
