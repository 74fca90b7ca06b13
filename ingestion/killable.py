"""Work on hostile files in child processes that can be killed, so that no page can hang or swell an ingestion.

The parent's side is `KillableWorker`; a module that does such work ends with `serve(…)` in its `main`.
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

PASSED_ON = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TMPDIR")
"""All of the environment that a child sees: the rest may hold keys."""
CALLS_PER_CHILD = 500
START_SECONDS = 30.0
WALL_FACTOR = 6.0
"""A call may last this much longer than its processor time: other processes want the cores, too."""
WALL_SECONDS = 2.0
LENGTH_BYTES = 4
"""Each message is preceded by its length; a call is also preceded by its milliseconds of processor time."""
PIPE_BYTES = 65_536


class TooMuchError(Exception):
    """A call went beyond its limits, or its process died; the text says which, as a part of a sentence."""


class KillableWorker:
    """One child process that answers calls, one after the other; a call that exceeds its limits loses the child.

    `module` is run as a program. Safe to use from several threads, which then wait for each other.
    """

    def __init__(self, module: str, *, memory_bytes: int) -> None:
        self._command = (sys.executable, "-P", "-m", module, str(memory_bytes))
        self._process: subprocess.Popen[bytes] | None = None
        self._calls = 0
        self._lock = threading.Lock()

    def call(self, payload: bytes, *, seconds: float) -> bytes:
        """The child's answer, for at most `seconds` of processor time. Raises `TooMuchError`."""
        with self._lock:
            if self._calls >= CALLS_PER_CHILD or (self._process and self._process.poll() is not None):
                self._end()
            if self._process is None:
                self._start()
            self._calls += 1
            answered = False
            try:
                header = len(payload).to_bytes(LENGTH_BYTES, "big") + int(seconds * 1000).to_bytes(LENGTH_BYTES, "big")
                answer = self._exchange(header + payload, WALL_SECONDS + WALL_FACTOR * seconds)
                answered = True
            except TimeoutError:
                raise TooMuchError(f"it takes more than {seconds:.1f} s to read") from None
            except (EOFError, OSError):
                slow = self._ended_by(signal.SIGPROF)
                why = f"it takes more than {seconds:.1f} s to read" if slow else "the process that read it died of it"
                raise TooMuchError(why) from None
            finally:
                if not answered:
                    self._end()
            return answer

    def restart(self) -> None:
        """Give back what the last call made the child grow by."""
        self.close()

    def close(self) -> None:
        with self._lock:
            self._end()

    def _start(self) -> None:
        environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._calls = 0
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        try:
            self._exchange(b"", START_SECONDS)
        except (TimeoutError, EOFError, OSError) as error:
            self._end()
            raise TooMuchError("the process that reads such pages does not start") from error

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except OSError:
                continue  # what was not sent yet is lost with the child
        process.wait()

    def _ended_by(self, number: signal.Signals) -> bool:
        if self._process is None:
            return False
        try:
            return self._process.wait(timeout=1.0) == -number
        except subprocess.TimeoutExpired:
            return False

    def _exchange(self, message: bytes, seconds: float) -> bytes:
        """Send a message and wait for the answer to it."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        deadline = time.monotonic() + seconds
        into, out = self._process.stdin.fileno(), self._process.stdout.fileno()
        unsent, answer, wanted = memoryview(message), bytearray(), LENGTH_BYTES
        with selectors.DefaultSelector() as selector:
            selector.register(out, selectors.EVENT_READ)
            if unsent:
                selector.register(into, selectors.EVENT_WRITE)
            while len(answer) < wanted:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                for key, _ in selector.select(left):
                    if key.fd == into:
                        unsent = unsent[os.write(into, unsent[:PIPE_BYTES]) :]
                        if not unsent:
                            selector.unregister(into)
                    elif piece := os.read(out, PIPE_BYTES):
                        answer += piece
                    else:
                        raise EOFError
                if len(answer) >= LENGTH_BYTES:
                    wanted = LENGTH_BYTES + int.from_bytes(answer[:LENGTH_BYTES], "big")
        return bytes(answer[LENGTH_BYTES:])


# --- the child process --------------------------------------------------------------------------------------------


def serve(answer: Callable[[bytes], bytes]) -> None:
    """Answer one call after the other until there are no more; argument 1 of the process is its bytes of memory."""
    os.nice(5)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent, which then closes the pipes
    _limit_memory(int(sys.argv[1]))
    calls, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(bytes(LENGTH_BYTES))  # ready
    answers.flush()
    while header := calls.read(2 * LENGTH_BYTES):
        payload = calls.read(int.from_bytes(header[:LENGTH_BYTES], "big"))
        # The kernel ends this process when the time is used up, whatever C code it is in then.
        signal.setitimer(signal.ITIMER_PROF, int.from_bytes(header[LENGTH_BYTES:], "big") / 1000)
        result = answer(payload)
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.write(len(result).to_bytes(LENGTH_BYTES, "big") + result)
        answers.flush()


def _limit_memory(extra_bytes: int) -> None:
    """Let this process grow by no more than that. Only where /proc tells its size; elsewhere the time limit must do."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        size = int(statm.read_text().split()[0]) * resource.getpagesize() + extra_bytes
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
