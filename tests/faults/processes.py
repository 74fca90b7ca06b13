"""Services and servers of a test's own, each a real process that may be killed, paused and started again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import psutil
from pydantic import SecretStr

from config.settings import GraphSettings
from server.answer.answer import whole_answer
from server.backends import Backends
from server.model import Answer, Question
from tests.server.cli_runner import ROOT, Cli
from tests.services import neo4j_server, ollama_server, searxng_server
from tests.services.environment import service
from tests.services.processes import free_port

LONGEST_START = 120.0
ENDLESS = "endless"
"""A model whose answer has no end of its own: it goes on with what its template begins. It reads nothing else, so that
it begins at once."""
MODELFILE = """FROM {weights}
TEMPLATE \"\"\"{{{{- range .Messages }}}}{{{{ end }}}}la la la la la la la la la la la la la la la la la la la la\"\"\"
PARAMETER num_thread 1
"""
CONTEXT = 4096
"""The window that Ollama gives by itself; for another one it would load the model again."""


@dataclass(slots=True)
class Instance:
    """A service that runs, and what a test may do to it. `start` after `kill` takes the same port again."""

    url: str
    launch: Callable[[], tuple[int, float]] = field(repr=False)
    pid: int = 0

    def start(self) -> None:
        start_all(self)

    def kill(self) -> None:
        """SIGKILL to all its processes, paused or not."""
        if self.pid:
            process = psutil.Process(self.pid)
            os.killpg(self.pid, signal.SIGKILL)
            process.wait(20)
            self.pid = 0

    def pause(self) -> None:
        os.killpg(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.killpg(self.pid, signal.SIGCONT)

    def cpu_seconds(self) -> float:
        """What it and its children have used so far."""
        process = psutil.Process(self.pid)
        times = [each.cpu_times() for each in (process, *process.children(recursive=True))]
        return sum(time.user + time.system for time in times)


def start_all(*instances: Instance) -> None:
    """At once; each is there when it answers."""

    def start(instance: Instance) -> None:
        instance.pid, _ = instance.launch()

    # Who starts a service forgets it and goes by its id alone, at which Python warns.
    with warnings.catch_warnings(), ThreadPoolExecutor(len(instances)) as threads:
        warnings.simplefilter("ignore", ResourceWarning)
        list(threads.map(start, instances))


@contextmanager
def own_neo4j(folder: Path) -> Iterator[Instance]:
    """An empty one, with its data in `folder`."""
    service("NEO4J_URL")
    neo4j_server.prepare()
    home = folder / "neo4j"
    environment = neo4j_server.make_home(home)

    def launch() -> tuple[int, float]:
        return neo4j_server.launch(home, "neo4j-own", environment, new=not (home / "data").exists())

    instance = Instance(environment["NEO4J_URL"], launch)
    instance.start()
    try:
        yield instance
    finally:
        instance.kill()
        shutil.rmtree(home)  # half a gigabyte


@contextmanager
def own_ollama(folder: Path, *, running: bool = True) -> Iterator[Instance]:
    """With the one model `ENDLESS`."""
    service("OLLAMA_URL")
    ollama_server.prepare()
    port, models = free_port(), folder / "models"

    def launch() -> tuple[int, float]:
        process, _ = ollama_server.launch("ollama-own", port=port, models=models, model=ENDLESS, modelfile=MODELFILE)
        return process

    instance = Instance(f"http://127.0.0.1:{port}", launch)
    try:
        if running:
            instance.start()
        yield instance
    finally:
        instance.kill()
        shutil.rmtree(models, ignore_errors=True)  # the size of the model


@contextmanager
def own_searxng(*, running: bool = True) -> Iterator[Instance]:
    """One more over the local site."""
    site_port = urlsplit(service("TRIVET_TEST_SITE_URL")).port or 0
    port = free_port()
    instance = Instance(
        f"http://127.0.0.1:{port}",
        lambda: searxng_server.launch("searxng-own", port=port, site_port=site_port),
    )
    try:
        if running:
            instance.start()
        yield instance
    finally:
        instance.kill()


def graph_in(neo4j: Instance, *, url: str = "", pool_size: int = 20) -> GraphSettings:
    return GraphSettings(
        neo4j_url=url or neo4j.url,
        neo4j_user=neo4j_server.USER,
        neo4j_password=SecretStr(neo4j_server.PASSWORD),
        neo4j_pool_size=pool_size,
    )


@dataclass(frozen=True, slots=True)
class Served:
    """`trivet serve` as a process."""

    url: str
    pid: int
    log: Path

    def post(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        return httpx.post(f"{self.url}{path}", json=body, timeout=100)

    def ready(self) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(f"{self.url}/readyz", timeout=10).json()
        return found


@contextmanager
def trivet_serve(home: Path, environment: Mapping[str, str]) -> Iterator[Served]:
    """It listens when this begins, and has ended in order, without a traceback in its log, when this ends."""
    log = home / "serve.log"
    with (
        log.open("w") as written,
        subprocess.Popen(
            [sys.executable, "-m", "server.cli", "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=written,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=Cli(home, ROOT).environment(environment),
        ) as process,
    ):
        assert process.stdout is not None
        late = threading.Timer(LONGEST_START, process.kill)
        late.start()
        line = process.stdout.readline()
        late.cancel()
        try:
            assert line.startswith("Trivet is ready at http://127.0.0.1:"), line + log.read_text()
            yield Served(line.split()[-1], process.pid, log)
            process.terminate()
            assert process.wait(40) == 0
        finally:
            process.kill()
    assert "Traceback" not in log.read_text()


async def asked(backends: Backends, text: str, *, use_web: bool = False) -> tuple[Answer, float]:
    """The answer, and the seconds it took."""
    begun = time.monotonic()
    answer = await whole_answer(Question(text=text, use_web=use_web), backends)
    return answer, time.monotonic() - begun


async def seconds_until(ask: Callable[[], Awaitable[bool]], *, within: float) -> float:
    """How long it took until `ask` said yes."""
    begun = time.monotonic()
    while not await ask():
        assert time.monotonic() - begun < within, f"not within {within:g} s"
        await asyncio.sleep(0.2)  # what comes back needs the machine too
    return time.monotonic() - begun
