"""What LangChain makes of the server: `python langchain.py URL QUESTION` prints one JSON object."""

from __future__ import annotations

import json
import sys

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from openai import NotFoundError


def main(url: str, question: str) -> None:
    chat = ChatOpenAI(base_url=f"{url}/v1", api_key="any", model="trivet", temperature=0, max_retries=0)
    whole = chat.invoke(question)
    chunks = list(chat.stream(question, stream_usage=True))
    total = chunks[0]
    for chunk in chunks[1:]:
        total += chunk
    turns = [SystemMessage("Be brief."), HumanMessage("Where is Hollin?"), AIMessage("At sea."), HumanMessage(question)]
    embeddings = OpenAIEmbeddings(
        base_url=f"{url}/v1", api_key="any", model="trivet", check_embedding_ctx_length=False, max_retries=0
    )
    try:
        ChatOpenAI(base_url=f"{url}/v1", api_key="any", model="gpt-9", max_retries=0).invoke(question)
        error = ""
    except NotFoundError as fault:
        error = str(fault.code)
    print(
        json.dumps(
            {
                "whole": whole.text,
                "streamed": total.text,
                "finish": [whole.response_metadata["finish_reason"], total.response_metadata["finish_reason"]],
                "usage": [bool(whole.usage_metadata), bool(total.usage_metadata)],
                "history": bool(chat.invoke(turns).text),
                "embedded": [len(vector) for vector in embeddings.embed_documents(["a lighthouse", "an eel"])],
                "error": error,
            }
        )
    )


main(*sys.argv[1:])
