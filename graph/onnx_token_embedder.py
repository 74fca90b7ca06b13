"""The token embedder that needs no server: answerai-colbert-small-v1 as an ONNX model on the CPU."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from tokenizers.processors import TemplateProcessing

from graph.errors import SettingsError
from graph.onnx_batches import OnnxBatches
from graph.onnx_models import open_tokenizer

BUNDLED_NAME = "answerai-colbert-small-v1"
MAX_TOKENS = 512
QUESTION_TOKENS = 128
"""Of a question: a longer one loses its end. Each costs a row of the comparison."""
DIMENSION = 128
"""Of the 384 numbers that the bundled file gives: it has no projection layer. On 150 questions of squad_dev the
first 128 had an MRR of .889 and all of them .897, for three times the room."""
PUNCTUATION = frozenset(string.punctuation)
QUESTION_MARK, PASSAGE_MARK = "[unused0]", "[unused1]"
"""What the model was trained to see after [CLS], so that it knows which of the two it reads."""


class OnnxTokenEmbedder:
    """`TokenEmbedder`: one unit vector for each token, special ones included, and no padding of questions.

    Passages do without their punctuation (Khattab & Zaharia 2020): an eighth less room, and no worse an order.
    """

    def __init__(self, folder: Path, *, name: str, threads: int = 0, batch_size: int = 8) -> None:
        self.model = name
        self.dimension = DIMENSION
        self._batches = OnnxBatches(folder, max_tokens=MAX_TOKENS, threads=threads, batch_size=batch_size)
        self._passages = marked_tokenizer(folder, PASSAGE_MARK, max_tokens=MAX_TOKENS)
        self._questions = marked_tokenizer(folder, QUESTION_MARK, max_tokens=QUESTION_TOKENS)

    async def embed_passages(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        return await self._batches.run(texts, telling_vectors, tokenizer=self._passages)

    async def embed_question(self, question: str) -> NDArray[np.float32]:
        return (await self._batches.run([question], token_vectors, tokenizer=self._questions))[0]

    async def close(self) -> None:
        self._batches.close()


def marked_tokenizer(folder: Path, mark: str, *, max_tokens: int) -> Tokenizer:
    """With `mark` after [CLS]. Raises `SettingsError` where the model does not know such a mark."""
    tokenizer = open_tokenizer(folder)
    marks = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", mark, "[SEP]")]
    if missing := [token for token, number in marks if number is None]:
        raise SettingsError(f"{folder / 'tokenizer.json'} has no {', '.join(missing)}: this is no ColBERT model.")
    tokenizer.post_processor = TemplateProcessing(single=f"[CLS] {mark} $A [SEP]", special_tokens=marks)
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def token_vectors(states: NDArray[np.float32], encodings: list[Encoding]) -> list[NDArray[np.float32]]:
    """(tokens, `DIMENSION`) for each text, without padding, each row of length 1."""
    return [_unit_rows(rows[: len(encoding.ids)]) for rows, encoding in zip(states, encodings, strict=True)]


def telling_vectors(states: NDArray[np.float32], encodings: list[Encoding]) -> list[NDArray[np.float32]]:
    """As `token_vectors`, without marks of punctuation."""
    found = []
    for rows, encoding in zip(states, encodings, strict=True):
        telling = [place for place, token in enumerate(encoding.tokens) if token not in PUNCTUATION]
        found.append(_unit_rows(rows[telling]))
    return found


def _unit_rows(states: NDArray[np.float32]) -> NDArray[np.float32]:
    rows = states[:, :DIMENSION]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(norms, 1e-12), dtype=np.float32)
