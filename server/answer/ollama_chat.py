"""Ollama as the model that writes answers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager

import httpx
import ollama

from config.settings import LLMSettings
from graph.errors import DependencyBusyError, DependencyDownError, DependencyFaultError
from graph.model import ChatMessage, ChatPiece
from graph.token_estimate import TokenCounter
from server.answer.http_faults import checked_url, reason_of, retry_after, shown_url
from server.answer.streams import DeadlineError, closing, patiently, with_deadlines
from server.answer.thinking import ThinkFilter

CONNECT_SECONDS = 5.0


class OllamaChat:
    """One model of one Ollama. Thinking is asked to be off, and stripped where it comes all the same."""

    def __init__(self, settings: LLMSettings) -> None:
        self.model = settings.model
        self.context_tokens = settings.context_tokens
        self._counter = TokenCounter(settings.context_tokens)
        self._url = shown_url(settings.url)
        self._first_seconds = settings.first_token_seconds
        self._total_seconds = settings.total_seconds
        # The library sets no timeout at all; reads are bounded by `with_deadlines`, the rest here.
        self._client = ollama.AsyncClient(
            host=checked_url(settings.url),
            timeout=httpx.Timeout(settings.total_seconds, connect=CONNECT_SECONDS),
            follow_redirects=False,
            event_hooks={"response": [self._refuse_busy]},
        )

    def count_tokens(self, text: str) -> int:
        """Ollama tells no counts before it answers, so this is an over-estimate; closer after a few answers."""
        return self._counter.count(text)

    async def stream(
        self,
        messages: Sequence[ChatMessage],
        *,
        temperature: float,
        max_tokens: int,
        stop: Sequence[str] = (),
    ) -> AsyncGenerator[ChatPiece, None]:
        def start() -> AsyncIterator[ollama.ChatResponse]:
            return self._parts(messages, temperature, max_tokens, stop)

        thoughts = ThinkFilter()
        started = False
        with self._named_faults(lambda: started):
            deadlined = with_deadlines(
                patiently(start), first_seconds=self._first_seconds, total_seconds=self._total_seconds
            )
            async with closing(deadlined) as parts:
                async for part in parts:
                    text = thoughts.feed(part.message.content or "")
                    started = started or bool(text)
                    if part.done:
                        self._counter.learn([message.content for message in messages], part.prompt_eval_count or 0)
                        yield ChatPiece(
                            text=text + thoughts.close(),
                            finish_reason="length" if part.done_reason == "length" else "stop",
                            prompt_tokens=part.prompt_eval_count or 0,
                            completion_tokens=part.eval_count or 0,
                        )
                        return
                    if text:
                        yield ChatPiece(text=text)
            raise DependencyFaultError(
                f"Ollama at {self._url} broke off in the middle of the answer of {self.model}", dependency="ollama"
            )

    async def close(self) -> None:
        await self._client.close()  # type: ignore[no-untyped-call]  # the library's own gap

    async def _parts(
        self, messages: Sequence[ChatMessage], temperature: float, max_tokens: int, stop: Sequence[str]
    ) -> AsyncIterator[ollama.ChatResponse]:
        """The library's stream. What it makes of lines that are no JSON, or JSON that is no answer, is named here."""
        stream = await self._client.chat(
            self.model,
            [{"role": message.role, "content": message.content} for message in messages],
            stream=True,
            think=False,
            options={
                "temperature": temperature,
                "num_predict": max_tokens,
                # Without it, Ollama takes its own small window and cuts the prompt in silence.
                "num_ctx": self.context_tokens,
                **({"stop": list(stop)} if stop else {}),
            },
        )
        async with closing(stream) as parts:
            while True:
                try:
                    part = await anext(parts)
                except StopAsyncIteration:
                    return
                except (ValueError, AttributeError, TypeError):
                    raise DependencyFaultError(
                        f"Ollama at {self._url} answered, but not as Ollama does: check llm.url", dependency="ollama"
                    ) from None
                yield part

    async def _refuse_busy(self, response: httpx.Response) -> None:
        """The library's error says nothing of `Retry-After`. Ollama says 503 where its queue is full."""
        if response.status_code in (429, 503):
            raise DependencyBusyError(
                f"Ollama at {self._url} is busy; ask again later, or raise OLLAMA_MAX_QUEUE",
                dependency="ollama",
                retry_after=retry_after(response),
            )

    @contextmanager
    def _named_faults(self, started: Callable[[], bool]) -> Iterator[None]:
        """The library's errors as ours: each names the address, the model and what to do, and echoes no body."""
        place = f"Ollama at {self._url}"
        try:
            yield
        except DeadlineError as error:
            raise DependencyDownError(
                f"{place}: {error} from {self.model}; raise llm.first_token_seconds or llm.total_seconds, or take a "
                "smaller model",
                dependency="ollama",
            ) from None
        except ollama.ResponseError as error:
            raise DependencyFaultError(self._explain(error), dependency="ollama") from None
        except httpx.TransportError as error:
            if started():
                raise DependencyFaultError(
                    f"{place} broke off in the middle of the answer of {self.model}: {reason_of(error)}",
                    dependency="ollama",
                ) from None
            raise DependencyDownError(
                f"{place} cannot be reached ({reason_of(error)}): start it with `ollama serve`, or set llm.url",
                dependency="ollama",
            ) from None

    def _explain(self, error: ollama.ResponseError) -> str:
        place = f"Ollama at {self._url}"
        if error.status_code == 404 and "model" in error.error:
            return f"{place} has no model {self.model!r}: run `ollama pull {self.model}`, or set llm.model"
        if error.status_code == 404:
            return f"{place} knows no /api/chat: check that llm.url is Ollama's own address"
        if error.status_code in (401, 403):
            return f"{place} refuses access: set OLLAMA_API_KEY, or OLLAMA_ORIGINS on its side"
        if error.status_code == -1:
            return f"{place} failed in the middle of the answer of {self.model}; its log says why"
        return f"{place} answered {error.status_code} for {self.model}; its log says why"
