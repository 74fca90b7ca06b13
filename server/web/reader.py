"""Reads pages in child processes that can be killed, so that no page can hang or swell the server."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

import msgspec

from graph.errors import DependencyFaultError

CHILD = (sys.executable, "-P", "-m", "server.web.readable")
PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR")
"""All of the environment that a child sees: the rest may hold keys."""
PAGES_PER_CHILD = 500
START_SECONDS = 30.0
LENGTH_BYTES = 4
"""Each message is preceded by its length."""


class ReadRequest(msgspec.Struct, frozen=True):
    """A page on its way to the child, and the seconds of processor time it may take there."""

    html: str
    cpu_seconds: float
    about: bool = False
    """Whether author, date and language are wanted, which takes twice the time."""


class Readable(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader would see of a page. `problem` is why there is nothing."""

    title: str = ""
    text: str = ""
    author: str = ""
    published: str = ""
    """YYYY-MM-DD."""
    language: str = ""
    """As the page says."""
    asks_password: bool = False
    problem: str = ""


class PageReader:
    """Up to `children` pages at once; a page that takes longer than `seconds` loses its child."""

    def __init__(self, *, children: int = 2, seconds: float = 4.0, memory_bytes: int = 400_000_000) -> None:
        self._seconds = seconds
        self._memory_bytes = memory_bytes
        self._free = asyncio.Semaphore(children)
        self._idle: list[_Child] = []
        self._starting: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start the first child while the page is still on its way; importing Trafilatura takes a second."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start_first())

    async def read(self, html: str, *, about: bool = False) -> Readable:
        """`about`: also who wrote it, when, and in which language.

        Raises `DependencyFaultError` where the page is too much for a child."""
        if self._starting is not None:
            await asyncio.shield(self._starting)
        async with self._free:
            child = await self._take()
            try:
                async with asyncio.timeout(self._seconds):
                    answer = await child.read(ReadRequest(html, self._seconds, about))
            except TimeoutError:
                raise _too_much(f"it takes more than {self._seconds:g} s to read") from None
            except (asyncio.IncompleteReadError, ConnectionError):
                raise _too_much("the process that read it was ended by its limits") from None
            else:
                if not answer.problem:  # else what it grew to may leave no room for the next page
                    self._idle.append(child)
                return answer
            finally:
                if child not in self._idle:
                    await child.end()

    async def close(self) -> None:
        if self._starting is not None:
            await asyncio.wait([self._starting])
        while self._idle:
            await self._idle.pop().end()

    async def _start_first(self) -> None:
        self._idle.append(await _Child.start(self._memory_bytes))

    async def _take(self) -> _Child:
        while self._idle:
            child = self._idle.pop()
            if child.usable:
                return child
            await child.end()
        return await _Child.start(self._memory_bytes)


class _Child:
    """One process that runs `readable.main`."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout
        self._pages = 0

    @classmethod
    async def start(cls, memory_bytes: int) -> _Child:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        process = await asyncio.create_subprocess_exec(
            *CHILD, str(memory_bytes), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
        )
        child = cls(process)
        started = False
        try:
            async with asyncio.timeout(START_SECONDS):
                await child._receive()
            started = True
        except (TimeoutError, asyncio.IncompleteReadError) as error:
            raise _too_much("the process that reads pages does not start") from error
        finally:
            if not started:
                await child.end()
        return child

    @property
    def usable(self) -> bool:
        return self._process.returncode is None and self._pages < PAGES_PER_CHILD

    async def read(self, request: ReadRequest) -> Readable:
        self._pages += 1
        payload = msgspec.msgpack.encode(request)
        self._requests.write(len(payload).to_bytes(LENGTH_BYTES, "big") + payload)
        await self._requests.drain()
        return msgspec.msgpack.decode(await self._receive(), type=Readable)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        self._requests.close()
        await self._process.wait()

    async def _receive(self) -> bytes:
        header = await self._answers.readexactly(LENGTH_BYTES)
        return await self._answers.readexactly(int.from_bytes(header, "big"))


def _too_much(why: str) -> DependencyFaultError:
    return DependencyFaultError(f"The page was left out: {why}.", dependency="web")
