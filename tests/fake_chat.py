"""A working chat model in memory: it says what the test gave it, and remembers what it was asked."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Sequence

from graph.errors import DependencyError
from graph.model import ChatMessage, ChatPiece

Says = str | Callable[[Sequence[ChatMessage]], str]


class FakeChat:
    """It speaks word by word, ends at `max_tokens` words or a stop word, and fails when told to."""

    model = "fake"

    def __init__(
        self,
        says: Says = "It is so [[1]].",
        *,
        error: DependencyError | None = None,
        fail_after: int = 0,
        first_seconds: float = 0.0,
        context_tokens: int = 8192,
    ) -> None:
        self.says = says
        self.error = error
        self.fail_after = fail_after
        """Pieces before `error` is raised."""
        self.first_seconds = first_seconds
        self.context_tokens = context_tokens
        self.asked: list[tuple[ChatMessage, ...]] = []
        self.options: list[dict[str, object]] = []
        self.open = 0
        """Streams begun and not yet ended or closed."""
        self.begun = asyncio.Event()

    def count_tokens(self, text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    async def stream(
        self, messages: Sequence[ChatMessage], *, temperature: float, max_tokens: int, stop: Sequence[str] = ()
    ) -> AsyncGenerator[ChatPiece, None]:
        self.asked.append(tuple(messages))
        self.options.append({"temperature": temperature, "max_tokens": max_tokens, "stop": tuple(stop)})
        self.open += 1
        self.begun.set()
        try:
            await asyncio.sleep(self.first_seconds)
            text = self.says if isinstance(self.says, str) else self.says(messages)
            for word in stop:
                text = text.partition(word)[0]
            pieces = re.findall(r"\s*\S+|\s+$", text)
            for count, piece in enumerate(pieces[:max_tokens]):
                if self.error is not None and count == self.fail_after:
                    raise self.error
                yield ChatPiece(text=piece)
            if self.error is not None:
                raise self.error
            yield ChatPiece(
                finish_reason="length" if len(pieces) > max_tokens else "stop",
                prompt_tokens=sum(self.count_tokens(message.content) for message in messages),
                completion_tokens=min(len(pieces), max_tokens),
            )
        finally:
            self.open -= 1

    async def close(self) -> None: ...
