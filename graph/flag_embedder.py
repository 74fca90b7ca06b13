"""BGE-M3 through FlagEmbedding (the extra `flag`): dense vectors, and the weights it has learned for words."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from graph.errors import DependencyFaultError, SettingsError

Result = TypeVar("Result")

NOT_WANTED = ["onnx/*", "imgs/*", "*.onnx", "*.onnx_data", "flax_model.msgpack", "rust_model.ot", "tf_model.h5"]
"""Files of the hub's repositories that are never loaded; BGE-M3's ONNX copy alone is 2 GB."""
SPARSE_FILES = ("sparse_linear.pt", "colbert_linear.pt")
"""FlagEmbedding loads its learned weights only if both are there, and else goes on with random ones."""


class FlagEmbedder:
    """Dense vectors only. Loading takes seconds to minutes and may download: call the constructor in a worker thread.

    The model and tokenizer that FlagEmbedding loads are called directly: its own `encode` runs the first batch of
    every call twice, to find out whether it fits into memory.
    """

    needed_files: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        model: str,
        *,
        dimension: int = 0,
        max_tokens: int = 512,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 8,
        device: str = "",
    ) -> None:
        self.model = model
        library = import_flag("embedder.provider")
        folder = model_folder(model, setting="embedder.name")
        if missing := [name for name in self.needed_files if not (folder / name).is_file()]:
            raise SettingsError(
                f"embedder.learned_sparse is on, but {model} has no {missing[0]}: it has not learned to weigh words; "
                "switch it off, or name a model that has (BAAI/bge-m3) in embedder.name"
            )
        self._loaded = load_model(library.BGEM3FlagModel, folder, model, device=device, setting="embedder.name")
        self._counter = own_tokenizer(self._loaded.tokenizer)
        config = self._loaded.network.model.config
        self.dimension = int(config.hidden_size)
        if dimension not in {0, self.dimension}:
            raise SettingsError(
                f"embedder.dimension is {dimension}, but {model} gives {self.dimension} numbers; set it to 0 or "
                f"{self.dimension}"
            )
        self.max_tokens = token_limit(max_tokens, self._loaded.tokenizer, config)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._batch_size = batch_size
        # One thread: torch itself uses all cores for a batch.
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="flag-embed")

    async def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        dense, _ = await self._embed([self._passage_prefix + text for text in texts], sparse=False)
        return dense

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        dense, _ = await self._embed([self._query_prefix + question], sparse=False)
        return np.asarray(dense[0])

    def count_tokens(self, text: str) -> int:
        """Untruncated, special tokens included."""
        return len(self._counter.encode(text).ids)

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _embed(self, texts: list[str], *, sparse: bool) -> tuple[NDArray[np.float32], list[dict[int, float]]]:
        dense = np.zeros((len(texts), self.dimension), np.float32)
        weights: list[dict[int, float]] = [{} for _ in texts]
        # Of similar length, so that padding costs little. One after the other, so that a question that comes
        # in the middle of many passages waits for one batch only.
        order = sorted(range(len(texts)), key=lambda index: -len(texts[index]))
        for start in range(0, len(order), self._batch_size):
            batch = order[start : start + self._batch_size]
            part = [texts[index] for index in batch]
            rows, words = await in_thread(self._threads, partial(self._run, part, sparse=sparse))
            dense[batch] = rows
            for index, found in zip(batch, words, strict=True):
                weights[index] = found
        return dense, weights

    def _run(self, texts: list[str], *, sparse: bool) -> tuple[NDArray[np.float32], list[dict[int, float]]]:
        inputs = self._loaded.tokenizer(
            texts, padding=True, truncation=True, max_length=self.max_tokens, return_tensors="pt"
        ).to(self._loaded.device)
        with importlib.import_module("torch").inference_mode():
            output = self._loaded.network(inputs, return_dense=True, return_sparse=sparse)
        dense = np.asarray(output["dense_vecs"].float().cpu().numpy(), dtype=np.float32)
        # Half precision on a GPU leaves lengths that are a little off.
        dense = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), 1e-12)
        if not sparse:
            return dense, [{} for _ in texts]
        heights = output["sparse_vecs"].float().squeeze(-1).cpu().numpy()
        return dense, [
            token_weights(tokens, row, self._special_tokens)
            for tokens, row in zip(inputs["input_ids"].tolist(), heights.tolist(), strict=True)
        ]

    @property
    def _special_tokens(self) -> frozenset[int]:
        """Of no meaning: <s>, </s>, <pad>, <unk>."""
        names = ("cls_token_id", "eos_token_id", "pad_token_id", "unk_token_id")
        return frozenset(number for name in names if (number := getattr(self._loaded.tokenizer, name)) is not None)


class FlagSparseEmbedder(FlagEmbedder):
    """A `SparseEmbedder`: also gives the weights that the model has learned for words."""

    needed_files = SPARSE_FILES

    async def embed_passages_both(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[dict[int, float]]]:
        return await self._embed([self._passage_prefix + text for text in texts], sparse=True)

    async def embed_question_both(self, question: str) -> tuple[NDArray[np.float32], dict[int, float]]:
        dense, weights = await self._embed([self._query_prefix + question], sparse=True)
        return np.asarray(dense[0]), weights[0]


def token_weights(tokens: Sequence[int], heights: Sequence[float], ignored: frozenset[int]) -> dict[int, float]:
    """The greatest weight of each token (BGE-M3, arXiv:2402.03216, §3.2: max over its places)."""
    weights: dict[int, float] = {}
    for token, height in zip(tokens, heights, strict=True):
        if token not in ignored and height > weights.get(token, 0.0):
            weights[token] = height
    return weights


# --- shared with the reranker ---------------------------------------------------------------------------------------


def import_flag(setting: str) -> Any:
    """The library. Only when it is asked for: it is an extra, and takes seconds to import."""
    try:
        return importlib.import_module("FlagEmbedding")
    except ImportError as error:
        raise SettingsError(
            f"{setting} is “flag”, but FlagEmbedding cannot be imported ({error}); install it with "
            "`uv sync --extra flag` or `pip install 'trivet[flag]'`"
        ) from error


def model_folder(model: str, *, setting: str) -> Path:
    """A local folder as it is, or the hub's model, downloaded unless it already has been."""
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if model.startswith((".", "/", "~")):
        raise SettingsError(f"{setting} is {model}, which is not a folder; correct it, or name a model of the hub")
    hub = importlib.import_module("huggingface_hub")
    try:
        return Path(hub.snapshot_download(model, ignore_patterns=NOT_WANTED))
    except Exception as error:
        raise SettingsError(
            f"{setting} is {model}, which is not a folder here and could not be fetched from the hub "
            f"({first_line(error)}); correct it, or put the model into a folder and name that"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedModel:
    """What FlagEmbedding loaded, ready to be called."""

    network: Any
    tokenizer: Any
    device: str


def load_model(factory: Any, folder: Path, model: str, *, device: str, setting: str) -> LoadedModel:
    """On the device asked for, else on the first GPU (in half precision), else on the CPU."""
    try:
        target = str(factory.get_target_devices(device or None)[0])
        loaded = factory(str(folder), devices=target, use_fp16=False)
        network = loaded.model.to(target).eval()
        return LoadedModel(
            network=network if target.startswith("cpu") else network.half(), tokenizer=loaded.tokenizer, device=target
        )
    except Exception as error:
        raise SettingsError(
            f"{setting} is {model}, which FlagEmbedding cannot run from {folder} ({first_line(error)}); "
            "name a model of the BGE family, and if the files are broken fetch them again"
        ) from error


def token_limit(wanted: int, tokenizer: Any, config: Any) -> int:
    """What the model can read at most; two positions of XLM-R's table are not for tokens."""
    return min(wanted, int(tokenizer.model_max_length), int(config.max_position_embeddings) - 2)


def own_tokenizer(tokenizer: Any) -> Tokenizer:
    """A copy without truncation and padding, for counting beside the thread that uses the original."""
    copy = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy


async def in_thread(threads: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    """In the model's thread; torch's errors (out of memory, mostly) as ours."""
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, work)
    except RuntimeError as error:
        advice = "; lower embedder.batch_size" if "memory" in str(error) else ""
        raise DependencyFaultError(
            f"FlagEmbedding's model failed: {first_line(error)}{advice}.", dependency="flag"
        ) from error


def first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300].rstrip(".")
