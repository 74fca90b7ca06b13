"""Neo4j Community from Maven Central's jars, run by the machine's Java."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import LiteralString

import neo4j
from neo4j.exceptions import DriverError, Neo4jError

from tests.services.processes import CACHE, free_port, run, spawn, wait_until

VERSION = "5.26.12"
USER, FIRST_PASSWORD, PASSWORD = "neo4j", "neo4j", "trivet-tests"
HOME = CACHE / "neo4j"
LIB = HOME / "lib"
READY = HOME / "ready"
OPENS = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch", "java.base/java.util.concurrent")
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>trivet</groupId><artifactId>neo4j-for-tests</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.neo4j.test</groupId><artifactId>neo4j-harness</artifactId><version>{version}</version></dependency>
    <dependency><groupId>org.neo4j.app</groupId><artifactId>neo4j-server</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""
CONFIGURATION = """server.default_listen_address=127.0.0.1
server.directories.data={home}/data
server.directories.logs={home}/logs
server.bolt.listen_address=127.0.0.1:{bolt}
server.bolt.advertised_address=127.0.0.1:{bolt}
server.http.listen_address=127.0.0.1:{http}
server.http.advertised_address=127.0.0.1:{http}
server.memory.heap.initial_size=256m
server.memory.heap.max_size=768m
server.memory.pagecache.size=128m
dbms.security.auth_enabled=true
dbms.security.auth_minimum_password_length=8
dbms.usage_report.enabled=false
"""


def prepare() -> None:
    if READY.exists() and READY.read_text() == VERSION:
        return
    HOME.mkdir(parents=True, exist_ok=True)
    (HOME / "pom.xml").write_text(POM.format(version=VERSION))
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={LIB}"]
    run("mvn", "-q", "-B", *goal, cwd=HOME)
    READY.write_text(VERSION)


def start() -> tuple[list[tuple[int, float]], dict[str, str]]:
    """With an empty database: what a former run left would only mislead."""
    environment = make_home(HOME / "home")
    process = launch(HOME / "home", "neo4j", environment, new=True)
    return [process], environment


def make_home(home: Path) -> dict[str, str]:
    """An empty database's folder, and how it will be reached; the port stays over restarts."""
    bolt = free_port()
    shutil.rmtree(home, ignore_errors=True)
    (home / "conf").mkdir(parents=True)
    text = CONFIGURATION.format(home=home, bolt=bolt, http=free_port())
    (home / "conf" / "neo4j.conf").write_text(text)
    return {"NEO4J_URL": f"bolt://127.0.0.1:{bolt}", "NEO4J_USER": USER, "NEO4J_PASSWORD": PASSWORD}


def launch(home: Path, name: str, environment: dict[str, str], *, new: bool) -> tuple[int, float]:
    """Its process, once it answers. `new`: it has no password yet."""
    process = spawn(name, java(home), cwd=home)
    if new:
        wait_until(lambda: _set_password(environment["NEO4J_URL"]), name, 180, [process])
    wait_until(lambda: answers(environment), name, 180, [process])
    return process


def java(home: Path) -> list[str]:
    opens = [f"--add-opens={module}=ALL-UNNAMED" for module in OPENS]
    entry = "org.neo4j.server.CommunityEntryPoint"
    folders = ["--home-dir", str(home), "--config-dir", str(home / "conf"), "--console-mode"]
    return ["java", "-cp", f"{LIB}/*", "-Xmx768m", *opens, entry, *folders]


def answers(environment: dict[str, str]) -> bool:
    """Ready is when Bolt answers a query; the port opens long before."""
    login = (environment["NEO4J_USER"], environment["NEO4J_PASSWORD"])
    return _run(environment["NEO4J_URL"], login, "RETURN 1", "neo4j")


def _set_password(url: str) -> bool:
    """A new server takes neo4j/neo4j and wants another password before anything else."""
    change = f"ALTER CURRENT USER SET PASSWORD FROM '{FIRST_PASSWORD}' TO '{PASSWORD}'"
    return _run(url, (USER, FIRST_PASSWORD), change, "system")


def _run(url: str, login: tuple[str, str], statement: LiteralString, database: str) -> bool:
    """Whether it ran; an auto-commit query, which the driver does not retry for half a minute."""
    try:
        with (
            neo4j.GraphDatabase.driver(url, auth=login, connection_timeout=5) as driver,
            driver.session(database=database) as session,
        ):
            session.run(statement).consume()
    except (Neo4jError, DriverError, OSError):
        return False
    return True
