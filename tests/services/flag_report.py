"""Runs in the venv of `flag_venv.py`: what our adapters and FlagEmbedding itself make of a tiny model, as JSON.

The model is shaped like BGE-M3 (XLM-R, a tokenizer with its special tokens, two linear layers beside it) with two
small layers and random weights.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from graph.errors import TrivetError
from graph.flag_embedder import FlagEmbedder, FlagSparseEmbedder
from graph.protocols import SparseEmbedder
from server.rerank.flag_reranker import FlagReranker

WIDTH = 32
POSITIONS = 66
"""Two of which are not for tokens."""
TEXTS = ["a lighthouse on a reef", "the keeper trims the lamp", "", "lamp " * 300, "a lamp a lamp a lamp", "ünknown"]
QUESTION = "who trims the lamp"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def tokenizer() -> Any:
    """XLM-R's kind: unigrams with ▁ for a space, `<s> a </s></s> b </s>` for a pair."""
    words = {word for text in [*TEXTS[:5], QUESTION] for word in text.split()}
    pieces = [(f"▁{word}", -1.0) for word in sorted(words)]
    letters = [(letter, -5.0) for letter in "▁abcdefghijklmnopqrstuvwxyz"]
    made = Tokenizer(models.Unigram([(name, 0.0) for name in SPECIAL] + pieces + letters, unk_id=3))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    transformers = importlib.import_module("transformers")
    return transformers.XLMRobertaTokenizerFast(tokenizer_object=made, model_max_length=POSITIONS - 2)


def write_models(folder: Path) -> None:
    """`m3`, `plain` (without the learned weights) and `reranker`."""
    torch, transformers = importlib.import_module("torch"), importlib.import_module("transformers")
    torch.manual_seed(7)
    shape = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    words = tokenizer()
    config = transformers.XLMRobertaConfig(
        vocab_size=len(words), max_position_embeddings=POSITIONS, num_labels=1, initializer_range=0.4, **shape
    )
    for name in ("m3", "plain"):
        transformers.XLMRobertaModel(config).save_pretrained(folder / name)
        words.save_pretrained(folder / name)
    weigher = torch.nn.Linear(WIDTH, 1)
    torch.nn.init.uniform_(weigher.weight, 0.0, 0.01)
    torch.nn.init.constant_(weigher.bias, 0.5)  # else many words would weigh nothing
    torch.save(weigher.state_dict(), folder / "m3" / "sparse_linear.pt")
    torch.save(torch.nn.Linear(WIDTH, WIDTH).state_dict(), folder / "m3" / "colbert_linear.pt")
    transformers.XLMRobertaForSequenceClassification(config).save_pretrained(folder / "reranker")
    words.save_pretrained(folder / "reranker")
    (folder / "broken").mkdir()
    (folder / "broken" / "config.json").write_text("{}", encoding="utf-8")


async def dense_part(folder: Path) -> dict[str, Any]:
    given = FlagEmbedder(str(folder), query_prefix="the ", passage_prefix="a ", max_tokens=40, batch_size=2)
    bare = FlagEmbedder(str(folder), batch_size=4)
    together = await bare.embed_passages(TEXTS)
    alone = [(await bare.embed_passages([text]))[0] for text in TEXTS]
    question = await given.embed_question(QUESTION)
    found = {
        "model": bare.model,
        "dimension": bare.dimension,
        "max_tokens": [bare.max_tokens, given.max_tokens],
        "is_sparse": isinstance(bare, SparseEmbedder),
        "shape": list(together.shape),
        "type": str(together.dtype),
        "vectors": together.tolist(),
        "alone": [vector.tolist() for vector in alone],
        "none": list((await bare.embed_passages([])).shape),
        "question": question.tolist(),
        "question_by_hand": (await bare.embed_question(f"the {QUESTION}")).tolist(),
        "passage": (await given.embed_passages([TEXTS[0]]))[0].tolist(),
        "passage_by_hand": (await bare.embed_passages([f"a {TEXTS[0]}"]))[0].tolist(),
        "counts": [bare.count_tokens("lamp " * 300), bare.count_tokens("")],
    }
    await given.close()
    await bare.close()
    return found


async def sparse_part(folder: Path) -> dict[str, Any]:
    flag = importlib.import_module("FlagEmbedding")
    own = flag.BGEM3FlagModel(str(folder), devices="cpu", use_fp16=False).encode(
        TEXTS, return_dense=True, return_sparse=True, max_length=POSITIONS - 2
    )
    embedder = FlagSparseEmbedder(str(folder), dimension=WIDTH, batch_size=4)
    vectors, weights = await embedder.embed_passages_both(TEXTS)
    question, question_weights = await embedder.embed_question_both(QUESTION)
    found = {
        "is_sparse": isinstance(embedder, SparseEmbedder),
        "vectors": vectors.tolist(),
        "own_vectors": own["dense_vecs"].tolist(),
        "weights": [sorted(found.items()) for found in weights],
        "own_weights": [
            sorted((int(token), float(weight)) for token, weight in found.items()) for found in own["lexical_weights"]
        ],
        "question": question.tolist(),
        "question_alone": (await embedder.embed_question(QUESTION)).tolist(),
        "question_weights": sorted(question_weights.items()),
        "words": tokenizer().convert_ids_to_tokens([token for token, _ in sorted(question_weights.items())]),
    }
    await embedder.close()
    return found


async def rerank_part(folder: Path) -> dict[str, Any]:
    flag = importlib.import_module("FlagEmbedding")
    own = flag.FlagReranker(str(folder), devices="cpu", max_length=POSITIONS - 2)
    reranker = FlagReranker(str(folder))
    short = [*TEXTS[:3], *TEXTS[4:]]
    many = ["the keeper trims the lamp on a reef"] * 4000
    began = time.monotonic()
    await reranker.score(QUESTION, many[:400], budget=60)
    budget = time.monotonic() - began
    began = time.monotonic()
    some = await reranker.score(QUESTION, many, budget=budget)
    spent = time.monotonic() - began
    found = {
        "model": reranker.model,
        "scores": await reranker.score(QUESTION, short, budget=60),
        "own_scores": own.compute_score([(QUESTION, passage) for passage in short]),
        "long": await reranker.score("lamp " * 2000, ["lamp " * 2000, "reef"], budget=60),
        "no_time": await reranker.score(QUESTION, short, budget=0),
        "none": await reranker.score(QUESTION, [], budget=1),
        "budget": budget,
        "spent": spent,
        "some": [score is not None for score in some],
    }
    await reranker.close()
    return found


def error_of(work: Callable[[], object]) -> list[str]:
    try:
        work()
    except TrivetError as error:
        return [type(error).__name__, str(error)]
    return ["", ""]


async def error_after_close(folder: Path) -> list[str]:
    embedder = FlagEmbedder(str(folder))
    await embedder.close()
    try:
        await embedder.embed_question(QUESTION)
    except TrivetError as error:
        return [type(error).__name__, str(error)]
    return ["", ""]


def errors(folder: Path) -> dict[str, list[str]]:
    return {
        "hub": error_of(lambda: FlagEmbedder("nobody/bge-m3")),
        "folder": error_of(lambda: FlagEmbedder("/no/such/folder")),
        "broken": error_of(lambda: FlagEmbedder(str(folder / "broken"))),
        "dimension": error_of(lambda: FlagEmbedder(str(folder / "m3"), dimension=1024)),
        "plain": error_of(lambda: FlagSparseEmbedder(str(folder / "plain"))),
        "device": error_of(lambda: FlagEmbedder(str(folder / "m3"), device="cuda:7")),
        "rerank_hub": error_of(lambda: FlagReranker("nobody/bge-reranker")),
        "rerank_broken": error_of(lambda: FlagReranker(str(folder / "broken"))),
        "closed": asyncio.run(error_after_close(folder / "m3")),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_models(folder)
        found = {
            "folder": name,
            "dense": asyncio.run(dense_part(folder / "m3")),
            "sparse": asyncio.run(sparse_part(folder / "m3")),
            "rerank": asyncio.run(rerank_part(folder / "reranker")),
            "errors": errors(folder),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
