"""`/api/facts`: what research proposed, and what people decide about it."""

from __future__ import annotations

from typing import Annotated

from litestar import Controller, Response, delete, get, patch, post
from litestar.params import FromPath, HeaderParameter, JSONBody, QueryParameter

from graph.errors import ConflictError
from graph.research import Fact, FactState
from server.http.problems import RequestError
from server.http.query import PROBLEMS, problem_response
from server.http.research import desk_of
from server.http.research_views import (
    BulkRequest,
    BulkResponse,
    DecisionRequest,
    EditRequest,
    FactPage,
    FactView,
    KeepRequest,
    view_fact,
    view_outcome,
)
from server.http.work import ServingDependency
from server.research.changes import Action, FactChange
from server.research.desk import FilingCabinet

MOST = 1_000
UNKNOWN_FACT = {404: problem_response("There is no such fact.")}
CHANGED = {409: problem_response("Somebody has changed it since it was looked at; `detail` says who.")}
RESPONSES = PROBLEMS | UNKNOWN_FACT | CHANGED
IfMatch = Annotated[
    str, HeaderParameter(name="If-Match", max_length=100, description="The version that was looked at, as in `ETag`.")
]


class KnowledgeController(Controller):
    """Facts: proposed by research, kept or rejected by people. Every change can be undone once."""

    path = "/api/facts"
    tags = ("knowledge",)

    @get(summary="Facts", responses=PROBLEMS)
    async def facts(
        self,
        serving: ServingDependency,
        topic: Annotated[str, QueryParameter(max_length=100)] = "",
        category: Annotated[str, QueryParameter(max_length=300)] = "",
        facts_state: Annotated[FactState | None, QueryParameter(name="state")] = None,
        limit: Annotated[int, QueryParameter(ge=1, le=MOST)] = 100,
        cursor: Annotated[str, QueryParameter(max_length=100)] = "",
    ) -> FactPage:
        """The oldest first."""
        return await fact_page(
            desk_of(serving), topic=topic, category=category, state=facts_state, limit=limit, cursor=cursor
        )

    @post("/bulk", status_code=200, summary="Change many facts", responses=PROBLEMS)
    async def bulk(self, data: JSONBody[BulkRequest], serving: ServingDependency) -> BulkResponse:
        """Each is done or refused by itself, in order; the answer says which."""
        done = await desk_of(serving).change_all([change.to_model(data.by) for change in data.changes])
        return BulkResponse(outcomes=tuple(map(view_outcome, done)))

    @get("/{fact_id:str}", summary="A fact", responses=PROBLEMS | UNKNOWN_FACT)
    async def fact(self, fact_id: FromPath[str], serving: ServingDependency) -> Response[FactView]:
        """With the quote that supports it. Its `ETag` is its version."""
        return _tagged(await desk_of(serving).fact(fact_id))

    @post("/{fact_id:str}/keep", status_code=200, summary="Approve a fact", responses=RESPONSES)
    async def keep(
        self, fact_id: FromPath[str], data: JSONBody[KeepRequest], serving: ServingDependency, match: IfMatch = ""
    ) -> Response[FactView]:
        """From now on it answers questions."""
        change = FactChange(
            id=fact_id,
            action=Action.KEEP,
            version=_version(data.version, match),
            by=data.by,
            evergreen=data.evergreen,
            expires=data.expires,
        )
        return await _changed(serving, change)

    @post("/{fact_id:str}/reject", status_code=200, summary="Reject a fact", responses=RESPONSES)
    async def reject(
        self, fact_id: FromPath[str], data: JSONBody[DecisionRequest], serving: ServingDependency, match: IfMatch = ""
    ) -> Response[FactView]:
        """It answers no questions, and is not proposed again."""
        return await _changed(serving, _decision(Action.REJECT, fact_id, data, match))

    @post("/{fact_id:str}/undo", status_code=200, summary="Undo the last change of a fact", responses=RESPONSES)
    async def undo(
        self, fact_id: FromPath[str], data: JSONBody[DecisionRequest], serving: ServingDependency, match: IfMatch = ""
    ) -> Response[FactView]:
        """Whoever made it."""
        return await _changed(serving, _decision(Action.UNDO, fact_id, data, match))

    @patch("/{fact_id:str}", summary="Edit a fact", responses=RESPONSES)
    async def edit(
        self, fact_id: FromPath[str], data: JSONBody[EditRequest], serving: ServingDependency, match: IfMatch = ""
    ) -> Response[FactView]:
        """Its text or its quote; what is left out stays."""
        change = FactChange(
            id=fact_id,
            action=Action.EDIT,
            version=_version(data.version, match),
            by=data.by,
            text=data.text,
            quote=data.quote,
        )
        return await _changed(serving, change)

    @delete("/{fact_id:str}", summary="Delete a fact", responses=RESPONSES)
    async def remove(self, fact_id: FromPath[str], serving: ServingDependency, match: IfMatch = "") -> None:
        """For good."""
        await desk_of(serving).change(FactChange(id=fact_id, action=Action.DELETE, version=_version(None, match)))


async def fact_page(
    cabinet: FilingCabinet, *, topic: str, category: str, state: FactState | None, limit: int, cursor: str
) -> FactPage:
    found = await cabinet.facts(topic=topic, category=category, state=state, limit=limit + 1, after=cursor)
    page = found[:limit]
    return FactPage(facts=tuple(view_fact(fact) for fact in page), next=page[-1].id if len(found) > limit else None)


async def _changed(serving: ServingDependency, change: FactChange) -> Response[FactView]:
    done = await desk_of(serving).change(change)
    assert done.fact is not None, "only a deletion leaves none"
    return _tagged(done.fact)


def _tagged(fact: Fact) -> Response[FactView]:
    return Response(view_fact(fact), headers={"etag": f'"{fact.version}"'})


def _decision(action: Action, fact_id: str, data: DecisionRequest, match: str) -> FactChange:
    return FactChange(id=fact_id, action=action, version=_version(data.version, match), by=data.by)


def _version(given: int | None, match: str) -> int | None:
    """By `If-Match: "3"` or by the body's `version`; None: whatever it is by now."""
    if not match or match == "*":
        return given
    digits = match.removeprefix("W/").strip('"')
    if not digits.isascii() or not digits.isdigit() or len(digits) > 15:
        raise RequestError(f'If-Match: {match[:50]!r} is no version of a fact; send one like "3".', param="If-Match")
    if given not in (None, int(digits)):
        raise ConflictError(f"If-Match says version {digits} and the body says {given}; say one.")
    return int(digits)
