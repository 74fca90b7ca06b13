"""Every setting: flags > environment (`TRIVET_…`) > `trivet.toml` > defaults, frozen once read.

Sections nest with two underscores in the environment: `TRIVET_LLM__URL`. Descriptions are the documentation.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

ENVIRONMENT_PREFIX = "TRIVET_"
FIRST_VERSION_NAMES = {
    "VECTOR_SIMILARITY_THRESHOLD": "search.vector_threshold",
    "HYBRID_RAG_VECTOR_LIMIT": "search.vector_limit",
    "HYBRID_RAG_GRAPH_LIMIT": "search.graph_limit",
    "HYBRID_RAG_WEB_LIMIT": "search.web_limit",
}
"""The names under which the first version knew four of the settings (mission.md §9)."""
NOT_SETTINGS = frozenset({"TRIVET_DATA", "TRIVET_CONFIG", "TRIVET_REQUIRE_SERVICES"})
"""Environment names with our prefix that are not settings: where test data and the settings file are."""


class SettingsProblem(ValueError):
    """A setting is unknown, missing or wrong; the message names it and where it was given."""


class Section(BaseModel):
    """A group of settings; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EmbedderSettings(Section):
    """[embedder]"""

    model_dir: Path | None = Field(None, description="A folder with model.onnx and tokenizer.json instead of the bundled bge-small-en-v1.5.")
    name: str = Field("bge-small-en-v1.5", description="Stamped on every stored vector; a store made with another name is refused.")
    query_prefix: str = Field("Represent this sentence for searching relevant passages: ", description="Put before questions, not passages.")
    pooling: Literal["cls", "mean"] = Field("cls", description="How token vectors become one.")
    threads: int = Field(0, ge=0, le=256, description="Worker threads; 0 means one per core.")
    batch_size: int = Field(8, ge=1, le=256, description="Texts in one run of the model.")


class RerankSettings(Section):
    """[rerank]"""

    enabled: bool = Field(True, description="Let the cross-encoder have the last word on the order.")
    model_dir: Path | None = Field(None, description="A folder with model.onnx and tokenizer.json instead of the bundled ms-marco-MiniLM-L12-v2.")
    candidates: int = Field(20, ge=1, le=100, description="How many of the fused ranking are scored.")
    budget_seconds: float = Field(0.8, gt=0, le=60, description="What is not scored by then keeps its fused order.")
    weight: float = Field(0.5, ge=0, le=1, description="Weight of the cross-encoder's order against the fused order; 1 ignores the latter.")


class SearchSettings(Section):
    """[search]"""

    vector_limit: int = Field(10, ge=1, le=1000, description="Hits of the vector leg that enter fusion.")
    graph_limit: int = Field(10, ge=1, le=1000, description="Hits of the graph leg that enter fusion.")
    web_limit: int = Field(5, ge=0, le=100, description="Hits of the web leg that enter fusion.")
    vector_threshold: float = Field(0.7, ge=-1, le=1, description="Dense hits below this cosine are noise; for BGE-type models.")
    rrf_k: int = Field(60, ge=1, le=1000, description="The k of reciprocal rank fusion.")
    adaptive_weights: bool = Field(True, description="Weigh the graph leg by how specific the matched entities are; off is plain RRF.")
    vector_seconds: float = Field(5.0, gt=0, le=120, description="Deadline of the vector leg.")
    graph_seconds: float = Field(2.0, gt=0, le=120, description="Deadline of the graph leg.")
    web_seconds: float = Field(5.0, gt=0, le=120, description="Deadline of the web leg.")
    neighbours: int = Field(1, ge=0, le=10, description="Chunks before and after a hit that are shown with it.")
    evidence_limit: int = Field(6, ge=1, le=50, description="Entries of evidence for an answer.")
    page_share: int = Field(2, ge=1, le=50, description="The most entries one page may take.")
    dedup_cosine: float = Field(0.92, ge=0, le=1, description="Passages at least this similar are one.")


class WebSettings(Section):
    """[web]"""

    searxng_url: str = Field("", description="SearXNG's address; empty leaves the web leg off.")
    fetch_seconds: float = Field(10.0, gt=0, le=120, description="Total time for one page.")
    max_bytes: int = Field(5_000_000, ge=1000, description="Decoded size above which a page is skipped.")
    allow_private: bool = Field(False, description="Let the fetcher connect to private and loopback addresses.")
    passages_per_page: int = Field(2, ge=1, le=20, description="Passages kept of one page.")


class LLMSettings(Section):
    """[llm]"""

    provider: Literal["none", "ollama", "openai"] = Field("none", description="Who writes answers; none gives extractive answers.")
    url: str = Field("http://127.0.0.1:11434", description="Address of Ollama, or of an OpenAI-compatible API up to and with /v1.")
    model: str = Field("", description="The model's name there.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the OpenAI-compatible API.")
    context_tokens: int = Field(8192, ge=512, le=2_000_000, description="The model's window.")
    first_token_seconds: float = Field(60.0, gt=0, le=3600, description="Deadline to the first token.")
    total_seconds: float = Field(300.0, gt=0, le=7200, description="Deadline of the whole answer.")


class AnswerSettings(Section):
    """[answer]"""

    persona: str = Field("neutral", description="Who answers unless the request says otherwise.")
    persona_dir: Path | None = Field(None, description="A folder with persona files of your own.")
    question_chars: int = Field(4000, ge=10, le=100_000, description="A longer question is refused.")
    abstain_below: float = Field(-4.0, description="Best cross-encoder logit under which the answer is that it does not know.")
    caution_below: float = Field(0.0, description="Best logit under which an answer is given with caution.")


class ServerSettings(Section):
    """[server]"""

    host: str = Field("127.0.0.1", description="Where to listen; anything but loopback needs an API key.")
    port: int = Field(8642, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    api_key: SecretStr = Field(SecretStr(""), description="Clients must send it as `Authorization: Bearer …` or `x-api-key`.")
    request_seconds: float = Field(120.0, gt=0, le=7200, description="Deadline of a request that is not streamed.")
    max_body_bytes: int = Field(1_000_000, ge=1000, description="A larger request body is refused.")
    citation_mode: Literal["annotations", "openwebui"] = Field("annotations", description="How chat answers carry their sources.")


class IngestionSettings(Section):
    """[ingestion]"""

    chunk_tokens: int = Field(256, ge=32, le=8192, description="Upper size of a chunk in the embedder's tokens, title and headings included.")
    batch_chunks: int = Field(128, ge=1, le=10_000, description="Chunks embedded and written together.")
    max_page_chars: int = Field(2_000_000, ge=1000, description="A longer page is refused and named.")
    ner_languages: tuple[str, ...] = Field(("en", "fr"), description="Languages whose names spaCy finds.")


class Settings(Section):
    """All settings."""

    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("trivet")), description="Folder of the store; two wikis are two homes.")
    embedder: EmbedderSettings = EmbedderSettings()
    rerank: RerankSettings = RerankSettings()
    search: SearchSettings = SearchSettings()
    web: WebSettings = WebSettings()
    llm: LLMSettings = LLMSettings()
    answer: AnswerSettings = AnswerSettings()
    server: ServerSettings = ServerSettings()
    ingestion: IngestionSettings = IngestionSettings()
