"""The application over a scripted answerer: without a socket, and as a server with OpenAI's own client.

One application and one server do for all tests, as making one takes a third of a second.
"""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import structlog
from litestar import Litestar
from litestar.testing import AsyncTestClient
from openai import OpenAI

from config.settings import Settings
from server.app import create_app
from server.logs import set_up_logging
from tests.server.http.running import Running, running
from tests.server.http.scripted import ScriptedAnswerer, opening

Client = AsyncTestClient[Litestar]


@pytest.fixture(autouse=True)
def logged() -> Iterator[io.StringIO]:
    """What is logged, as the server writes it."""
    root = logging.getLogger()
    before, level = root.handlers, root.level
    written = io.StringIO()
    set_up_logging(stream=written)
    yield written
    root.handlers, root.level = before, level
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def only_answerer() -> ScriptedAnswerer:
    return ScriptedAnswerer()


@pytest.fixture
def answerer(only_answerer: ScriptedAnswerer) -> ScriptedAnswerer:
    """As new."""
    vars(only_answerer).update(vars(ScriptedAnswerer()))
    return only_answerer


@pytest.fixture(scope="session")
def app(only_answerer: ScriptedAnswerer) -> Litestar:
    return create_app(Settings(), open_answerer=opening(only_answerer))


@pytest.fixture
async def client(app: Litestar, answerer: ScriptedAnswerer) -> AsyncIterator[Client]:
    async with AsyncTestClient(app) as client:
        yield client


@pytest.fixture(scope="session")
def only_server(only_answerer: ScriptedAnswerer) -> Iterator[Running]:
    with running(only_answerer) as server:
        yield server


@pytest.fixture
def server(only_server: Running, answerer: ScriptedAnswerer) -> Running:
    return only_server


@pytest.fixture
def ai(server: Running) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
        yield client
