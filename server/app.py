"""The web application: routes, what they are given, and what is opened and closed with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from litestar import Litestar
from litestar.datastructures import State
from litestar.di import Provide

from config.settings import Settings
from server.http.answerer import OpenAnswerer
from server.http.auth import KeyAuth
from server.http.feedback import FeedbackController
from server.http.gate import Drain, Gate
from server.http.given_answers import GivenAnswers
from server.http.health import healthz, healthz_head, metrics, readyz
from server.http.knowledge import KnowledgeController
from server.http.library import LibraryController
from server.http.metrics import Metrics, RequestMetrics
from server.http.openai.chat import ChatController
from server.http.openai.embeddings import EmbeddingsController
from server.http.openai.models import ModelsController, not_offered
from server.http.options import HttpOptions
from server.http.personas import PersonasController
from server.http.problems import answer_error
from server.http.query import QueryController
from server.http.requests import ApiRequest
from server.http.research import ResearchController
from server.http.schema_page import openapi_config
from server.http.work import Serving
from server.http.writing import WritingController
from server.logs import RequestLog


def create_app(
    settings: Settings,
    *,
    open_answerer: OpenAnswerer,
    options: HttpOptions | None = None,
    drain: Drain | None = None,
) -> Litestar:
    """`drain` is the handle by which `serve` ends what is under way."""
    options = options or HttpOptions.from_settings(settings)
    drain = drain or Drain()
    counted = Metrics()

    @asynccontextmanager
    async def lifespan(app: Litestar) -> AsyncIterator[None]:
        async with open_answerer(settings) as answerer:
            app.state.serving = Serving(
                answerer=answerer, options=options, drain=drain, metrics=counted, given=GivenAnswers(counted)
            )
            yield

    app = Litestar(
        route_handlers=[
            QueryController,
            PersonasController,
            LibraryController,
            ResearchController,
            KnowledgeController,
            WritingController,
            FeedbackController,
            ChatController,
            EmbeddingsController,
            ModelsController,
            not_offered,
            healthz,
            healthz_head,
            readyz,
            metrics,
        ],
        dependencies={"serving": Provide(provide_serving, sync_to_thread=False)},
        exception_handlers={Exception: answer_error},
        lifespan=[lifespan],
        logging_config=None,
        middleware=[KeyAuth(options.api_key), Gate(options.max_active)],
        openapi_config=openapi_config(asks_for_key=bool(options.api_key)),
        request_class=ApiRequest,
        request_max_body_size=options.max_body_bytes,
        state=State({"options": options}),
    )
    # Around everything: Litestar's own middleware sees no request that meets no route.
    app.asgi_handler = RequestLog(RequestMetrics(app.asgi_handler, counted))
    return app


def provide_serving(state: State) -> Serving:
    serving: Serving = state.serving
    return serving
