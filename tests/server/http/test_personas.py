"""`/api/personas`, and the persona of a search."""

from __future__ import annotations

import pytest

from config.personas import load_personas
from server.http.backends_answerer import BackendsAnswerer
from tests.server.answer.found import backends
from tests.server.http.conftest import Client
from tests.server.http.scripted import ScriptedAnswerer

ASKED = {"question": "Who wrote Animal Farm?"}


async def test_who_can_answer_the_default_first(client: Client, answerer: ScriptedAnswerer) -> None:
    answerer.personas = ("teacher", "archiviste", "neutral")
    told = (await client.get("/api/personas")).json()
    assert [persona["name"] for persona in told] == ["teacher", "archiviste", "neutral"]
    assert [persona["default"] for persona in told] == [True, False, False]
    archivist = load_personas(None)["archiviste"]
    assert told[1]["language"] == "fr"
    assert told[1]["voice"] == archivist.voice
    assert told[1]["instructions"] == archivist.instructions.strip()
    assert told[1]["source_weights"] == archivist.source_weights
    assert told[2]["language"] == ""


def test_each_one_that_is_served_can_be_described() -> None:
    served = BackendsAnswerer(backends())
    assert [served.persona(name).name for name in served.personas] == list(served.personas)
    assert served.persona("").name == served.personas[0]


async def test_a_search_has_a_persona_too(client: Client, answerer: ScriptedAnswerer) -> None:
    response = await client.post("/api/search", json=ASKED | {"persona": "teacher"})
    assert response.status_code == 200
    assert answerer.questions[0].persona == "teacher"


@pytest.mark.parametrize("path", ["/api/search", "/api/query", "/api/query/stream"])
async def test_an_unknown_persona_is_a_404_with_the_list(client: Client, answerer: ScriptedAnswerer, path: str) -> None:
    response = await client.post(path, json=ASKED | {"persona": "pirate"})
    assert response.status_code == 404
    assert response.json()["detail"] == "There is no persona 'pirate'; there are neutral, teacher."
    assert answerer.questions == []
