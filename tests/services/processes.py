"""Starting, finding again and stopping the processes of a service; nothing that was not started here is touched."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

REPOSITORY = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("TRIVET_SERVICES_CACHE") or REPOSITORY / ".cache" / "services")
STATE = CACHE / "running.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A service that was started: its processes as (pid, creation time), and what tests need to know of it."""

    processes: list[tuple[int, float]]
    environment: dict[str, str]
    seconds: float

    @property
    def alive(self) -> bool:
        return all(_is_ours(pid, created) for pid, created in self.processes)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(*command: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
    """One step of a build, at low priority. Its output is shown only if it fails."""
    step = ["nice", "-n", "15", *map(str, command)]
    done = subprocess.run(
        step,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(step)} failed:\n{done.stdout.decode(errors='replace')[-4000:]}")


def spawn(
    name: str, command: Sequence[str | Path], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> tuple[int, float]:
    """A process in a session of its own, its output in the cache's `NAME.log`."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return process.pid, psutil.Process(process.pid).create_time()


def wait_until(ready: Callable[[], bool], what: str, seconds: float, processes: Sequence[tuple[int, float]]) -> None:
    """Ask until the service really answers; stop what was started if it does not."""
    end = time.monotonic() + seconds
    while not ready():
        gone = not all(_is_ours(pid, created) for pid, created in processes)
        if gone or time.monotonic() > end:
            for pid, created in processes:
                stop_process(pid, created)
            how = "ended" if gone else f"did not answer within {seconds:g} s"
            raise SystemExit(f"{what} {how}; its log is {CACHE / what}.log")
        time.sleep(0.25)


def stop_process(pid: int, created: float) -> None:
    """Its whole group, first politely."""
    if not _is_ours(pid, created):
        return
    process = psutil.Process(pid)
    os.killpg(pid, signal.SIGTERM)
    try:
        process.wait(15)
    except psutil.TimeoutExpired:
        os.killpg(pid, signal.SIGKILL)
        process.wait(15)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def read_state() -> dict[str, Running]:
    if not STATE.exists():
        return {}
    return {
        name: Running(
            processes=[(pid, created) for pid, created in entry["processes"]],
            environment=entry["environment"],
            seconds=entry["seconds"],
        )
        for name, entry in json.loads(STATE.read_text()).items()
    }


def write_state(state: Mapping[str, Running]) -> None:
    plain = {
        name: {"processes": entry.processes, "environment": entry.environment, "seconds": entry.seconds}
        for name, entry in state.items()
    }
    STATE.write_text(json.dumps(plain, indent=2))


@contextmanager
def only_one() -> Iterator[None]:
    """Two runs at once would build and start everything twice."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _is_ours(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - created) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
