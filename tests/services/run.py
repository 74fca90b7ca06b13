"""Start, stop and show the real services: `python -m tests.services.run start|stop|status [NAME…|all]`.

`start` prints the environment that the services provide, as lines for a shell's `eval`; all else goes to stderr.
Nothing is started twice. Downloads and builds are kept in `.cache/services` (or TRIVET_SERVICES_CACHE).
"""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.services import (
    dokuwiki_data,
    mediawiki_server,
    neo4j_server,
    nginx_site,
    ollama_server,
    searxng_server,
)
from tests.services.processes import Running, only_one, read_state, say, stop_process, write_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How a service is built (once), started, and asked whether it works."""

    prepare: Callable[[], None]
    start: Callable[[], tuple[list[tuple[int, float]], dict[str, str]]]
    answers: Callable[[dict[str, str]], bool]


SERVICES = {
    "searxng": Service(prepare=searxng_server.prepare, start=searxng_server.start, answers=searxng_server.answers),
    "ollama": Service(prepare=ollama_server.prepare, start=ollama_server.start, answers=ollama_server.answers),
    "neo4j": Service(prepare=neo4j_server.prepare, start=neo4j_server.start, answers=neo4j_server.answers),
    "mediawiki": Service(
        prepare=mediawiki_server.prepare, start=mediawiki_server.start, answers=mediawiki_server.answers
    ),
    "dokuwiki": Service(prepare=dokuwiki_data.prepare, start=dokuwiki_data.start, answers=dokuwiki_data.answers),
    "nginx": Service(prepare=nginx_site.prepare, start=nginx_site.start, answers=nginx_site.answers),
}


def start(names: Sequence[str]) -> dict[str, str]:
    """The environment of all of them."""
    environment: dict[str, str] = {}
    for name in names:
        state = read_state()
        running = state.get(name)
        if running is None or not running.alive or not SERVICES[name].answers(running.environment):
            if running is not None:
                _stop(running)
            running = _start(name)
            write_state({**read_state(), name: running})
        say(f"{name}: up (started in {running.seconds:.1f} s)")
        environment |= running.environment
    return environment


def stop(names: Sequence[str]) -> None:
    state = read_state()
    for name in names:
        if running := state.pop(name, None):
            _stop(running)
            say(f"{name}: stopped")
    write_state(state)


def status(names: Sequence[str]) -> bool:
    """Whether all of them answer."""
    state = read_state()
    all_up = True
    for name in names:
        running = state.get(name)
        up = running is not None and running.alive and SERVICES[name].answers(running.environment)
        say(f"{name}: {'up' if up else 'down'}")
        all_up = all_up and up
    return all_up


def _start(name: str) -> Running:
    began = time.monotonic()
    SERVICES[name].prepare()
    built = time.monotonic()
    if built - began > 1:
        say(f"{name}: built in {built - began:.0f} s")
    processes, environment = SERVICES[name].start()
    return Running(processes=processes, environment=environment, seconds=time.monotonic() - built)


def _stop(running: Running) -> None:
    for pid, created in running.processes:
        stop_process(pid, created)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["start", "stop", "status"])
    parser.add_argument("names", nargs="*", default="all", choices=[*SERVICES, "all"])
    given = parser.parse_args()
    names = list(SERVICES) if "all" in given.names else given.names
    with only_one():
        if given.action == "start":
            for key, value in start(names).items():
                print(f"export {key}={shlex.quote(value)}")
        elif given.action == "stop":
            stop(names)
        elif not status(names):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
