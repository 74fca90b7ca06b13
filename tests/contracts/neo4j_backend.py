"""An empty graph on the real Neo4j, for the contract suite and for Neo4j's own tests."""

from __future__ import annotations

from typing import LiteralString

import neo4j

from graph.neo4j_connection import Neo4jConnection
from graph.neo4j_store import Neo4jGraph
from tests.services.environment import service


def empty_neo4j_graph() -> Neo4jGraph:
    in_neo4j("MATCH (node) DETACH DELETE node")
    return Neo4jGraph(connection())


def connection(**changes: str | int | float) -> Neo4jConnection:
    login = {"user": service("NEO4J_USER"), "password": service("NEO4J_PASSWORD"), **changes}
    return Neo4jConnection(str(login.pop("url", service("NEO4J_URL"))), **login)  # type: ignore[arg-type]


def in_neo4j(query: LiteralString, **values: object) -> list[list[object]]:
    """Past the store, as somebody else would."""
    url, login = service("NEO4J_URL"), (service("NEO4J_USER"), service("NEO4J_PASSWORD"))
    with neo4j.GraphDatabase.driver(url, auth=login) as driver:
        return [record.values() for record in driver.execute_query(query, values).records]
