"""`/v1/models`: one model per persona; and the routes of OpenAI's that are not offered."""

from __future__ import annotations

import time
from dataclasses import dataclass

from litestar import Controller, get, route
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import FromPath
from msgspec import Struct

from server.http.problems import OpenAIErrorBody, RemovedRouteError, UnknownModelError
from server.http.work import ServingDependency

MODEL = "trivet"
WRITES = f"{MODEL}/write"
"""Writes a long piece, where the server can."""
STARTED = int(time.time())


def _error(description: str) -> ResponseSpec:
    return ResponseSpec(OpenAIErrorBody, description=description, generate_examples=False)


OPENAI_ERRORS: dict[int, ResponseSpec] = {
    400: _error("The request cannot be used; `param` names the part."),
    401: _error("The API key is missing or wrong."),
    404: _error("There is no such model."),
    413: _error("The body is too large."),
    502: _error("A service answered wrongly."),
    503: _error("Too busy, or something it needs is down."),
    504: _error("No answer within the deadline."),
}


class Model(Struct, frozen=True, kw_only=True):
    """A model as OpenAI lists it."""

    id: str
    created: int
    owned_by: str = MODEL
    object: str = "model"


class ModelList(Struct, frozen=True, kw_only=True):
    """All models."""

    data: tuple[Model, ...]
    object: str = "list"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenModel:
    """The model's id as it was asked for, and who answers under it ("" is the configured persona)."""

    id: str
    persona: str


def model_ids(personas: tuple[str, ...], *, writes: bool = False) -> tuple[str, ...]:
    names = (MODEL, *(f"{MODEL}/{persona}" for persona in personas), *((WRITES,) if writes else ()))
    return tuple(dict.fromkeys(names))


def find_model(name: str | None, personas: tuple[str, ...], *, writes: bool = False) -> ChosenModel:
    """No name means the configured persona, as with other local servers."""
    if not name or name == MODEL:
        return ChosenModel(id=MODEL, persona="")
    if name == WRITES and writes:
        return ChosenModel(id=WRITES, persona="")
    if name not in model_ids(personas):
        known = ", ".join(model_ids(personas, writes=writes))
        raise UnknownModelError(f"The model {name[:100]!r} does not exist; there are {known}.")
    return ChosenModel(id=name, persona=name.removeprefix(f"{MODEL}/"))


class ModelsController(Controller):
    """Models."""

    path = "/v1/models"
    tags = ("openai",)

    @get(summary="List the models", responses={401: OPENAI_ERRORS[401]})
    async def list_models(self, serving: ServingDependency) -> ModelList:
        """One per persona; `trivet` is the configured one."""
        answerer = serving.answerer
        ids = model_ids(answerer.personas, writes=answerer.pieces is not None)
        return ModelList(data=tuple(Model(id=each, created=STARTED) for each in ids))

    @get("/{model_id:path}", summary="Show a model", responses={code: OPENAI_ERRORS[code] for code in (400, 401, 404)})
    async def show_model(self, model_id: FromPath[str], serving: ServingDependency) -> Model:
        """An id may have a slash: `trivet/neutral`."""
        chosen = find_model(model_id.strip("/"), serving.answerer.personas, writes=serving.answerer.pieces is not None)
        return Model(id=chosen.id, created=STARTED)


@route(
    ["/v1/responses", "/v1/responses/{rest:path}", "/v1/completions"],
    http_method=["GET", "POST"],
    include_in_schema=False,
)
async def not_offered() -> None:
    raise RemovedRouteError(
        "This server does not have this route; use POST /v1/chat/completions. Most clients have a setting for it; "
        'in the Vercel AI SDK it is openai.chat("trivet").'
    )
