"""What LlamaIndex makes of the server: `python llama_index.py URL QUESTION` prints one JSON object."""

from __future__ import annotations

import json
import sys

# This file's folder would stand before the library of the same name.
sys.path.pop(0)

from llama_index.core.base.llms.types import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from openai import NotFoundError


def main(url: str, question: str) -> None:
    options = {"api_base": f"{url}/v1", "api_key": "any", "is_chat_model": True, "max_retries": 0}
    model = OpenAILike(model="trivet", temperature=0.0, **options)
    asked = [ChatMessage(role="user", content=question)]
    turns = [
        ChatMessage(role="system", content="Be brief."),
        ChatMessage(role="user", content="Where is Hollin?"),
        ChatMessage(role="assistant", content="At sea."),
        *asked,
    ]
    chunks = list(model.stream_chat(asked))
    try:
        OpenAILike(model="gpt-9", **options).chat(asked)
        error = ""
    except NotFoundError as fault:
        error = str(fault.code)
    print(
        json.dumps(
            {
                "whole": model.chat(asked).message.content,
                "streamed": "".join(chunk.delta or "" for chunk in chunks),
                "completed": model.complete(question).text,
                "history": bool(model.chat(turns).message.content),
                "error": error,
            }
        )
    )


main(*sys.argv[1:])
