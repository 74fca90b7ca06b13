"""`trivet worker`."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from functools import partial

import rich_click as click

from config.settings import Settings
from graph.errors import StoreBusyError
from graph.home import JOBS_FILE, HomeLock, prepare_home
from graph.jobs import ENDED, JobState
from graph.sqlite_jobs import SqliteJobs
from server.commands.options import common_options, options_of
from server.commands.setup import settings_of
from server.commands.terminal import Printer, print_json
from server.jobs import JobRunner
from server.library import open_filling_models, open_for_job, take_turn
from server.logs import set_up_logging
from server.serve import secrets_of
from server.source_jobs import work_on

NAME = "worker"


@click.command()
@click.option("--once", is_flag=True, help="Do the jobs that wait, and end.")
@common_options
@click.pass_context
def command(context: click.Context, once: bool) -> None:
    """Do the jobs that fill the store, one after the other, until it is stopped.

    For a server with server.run_jobs = false, on the same machine and with the same settings. While the server holds
    the store, a worker can change it only where the vectors are in Qdrant (vectors.qdrant_url). Several workers share
    the queue; one of them works at a time. A job that is cut short goes back to the queue.
    """
    options = options_of(context)
    settings = settings_of(options)
    set_up_logging(secret_values=secrets_of(settings))
    with _holding(settings):
        ended = asyncio.run(_work(settings, once=once, quiet=once or options.json))
    if options.json:
        print_json({state.value: ended[state] for state in sorted(ENDED)})
    elif once:
        Printer().line(", ".join(f"{ended[state]} {state.value}" for state in sorted(ended)) or "no job was waiting")


@contextmanager
def _holding(settings: Settings) -> Iterator[None]:
    """The store's lock where the vectors are in its folder: their engine takes one process at a time. Beside a
    Qdrant that lock is left to the server. Raises `StoreBusyError` naming who holds it."""
    if settings.vectors.qdrant_url:
        yield
        return
    try:
        lock = HomeLock.acquire(settings.home, command=NAME)
    except StoreBusyError:
        holder = HomeLock.holder(settings.home) or "another process"
        raise StoreBusyError(
            f"The vectors of the store in {settings.home} are in that folder, which only one process can open, and "
            f"{holder} has it; stop that one, or move the vectors to a Qdrant server (set vectors.qdrant_url, "
            "`trivet migrate --to servers`), beside which a server and workers can run."
        ) from None
    with lock:
        yield


async def _work(settings: Settings, *, once: bool, quiet: bool) -> Counter[JobState]:
    """How many jobs ended in which way, by the time SIGTERM or Ctrl-C came, or none waited any more (`once`)."""
    async with _opened_runner(settings) as runner:
        try:
            with _stop_signal() as stopped:
                working = runner.start(until_empty=once)
                if not quiet:
                    print(f"Trivet works on the jobs of {settings.home}", flush=True)
                waiting = asyncio.ensure_future(stopped.wait())
                await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if working.done():
                    working.result()
        finally:
            await runner.close()
        return runner.ended


@asynccontextmanager
async def _opened_runner(settings: Settings) -> AsyncIterator[JobRunner]:
    """With what stays open between jobs: the queue and the models."""
    home = settings.home
    await asyncio.to_thread(prepare_home, home)
    async with open_filling_models(settings) as models:
        with closing(SqliteJobs(home / JOBS_FILE)) as jobs:
            work = work_on(partial(open_for_job, settings, models, jobs))
            yield JobRunner(jobs, work, turn=partial(take_turn, home, command=NAME))


@contextmanager
def _stop_signal() -> Iterator[asyncio.Event]:
    """Set by SIGTERM and Ctrl-C; a second one ends the process as ever."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    numbers = (signal.SIGTERM, signal.SIGINT)

    def stop() -> None:
        stopped.set()
        for number in numbers:
            loop.remove_signal_handler(number)

    for number in numbers:
        loop.add_signal_handler(number, stop)
    try:
        yield stopped
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
