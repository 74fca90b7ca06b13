"""What our reranker costs beside the bare model, and whether it keeps its time budget.

    uv run python -m tests.benchmarks.cross_encoder FOLDER [--questions 40] [--passages 20] [--budget 0.8]

FOLDER is BEIR-style; each question is scored with its gold passage and others of the corpus. Both ways in one run, by
turns: `OnnxReranker.score` without a limit, and onnxruntime alone with its own threads on the same encodings, longest
first, in batches of eight. Prints one JSON object: the ratio of their times (median and worst tenth), the largest
difference of a logit, and milliseconds over the budget where there is one.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from tokenizers import Encoding

from graph.model import Page
from graph.onnx_models import OnnxModel, bundled_model_dir, length_batches, open_tokenizer, worker_count
from ingestion.sources.beir import BeirCorpus
from server.evaluation.dataset import read_questions
from server.evaluation.metrics import percentile
from server.rerank.onnx_reranker import MAX_TOKENS, OnnxReranker

MODEL = "reranker_en"
UNHURRIED = 600.0
BATCH = 8


@dataclass(frozen=True, slots=True)
class BareModel:
    """onnxruntime as one would use it first: all cores in one session."""

    model: OnnxModel

    @classmethod
    def open(cls, folder: Path) -> BareModel:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = worker_count(0)
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        tokenizer = open_tokenizer(folder)
        tokenizer.enable_truncation(MAX_TOKENS, strategy="only_second")
        return cls(OnnxModel(tokenizer, session, frozenset(node.name for node in session.get_inputs())))

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        encodings = self.model.tokenizer.encode_batch([(question, passage) for passage in passages])
        return self._logits(encodings)

    def _logits(self, encodings: Sequence[Encoding]) -> list[float]:
        logits = np.zeros(len(encodings))
        for batch in length_batches([len(encoding.ids) for encoding in encodings], batch_size=BATCH):
            output = self.model.run([encodings[index] for index in batch])
            logits[batch] = output.reshape(len(batch), -1)[:, 0]
        return [float(logit) for logit in logits]


def candidates(folder: Path, questions: int, count: int) -> list[tuple[str, list[str]]]:
    """Each question with its gold passages, and the corpus's next ones up to `count`."""
    pages = {item.key: f"{item.title} › {item.text}" for item in BeirCorpus(folder).read() if isinstance(item, Page)}
    others = itertools.cycle(pages.values())
    return [
        (judged.text, [*(pages[key] for key in sorted(judged.gold)), *itertools.islice(others, count)][:count])
        for judged in read_questions(folder)[:questions]
    ]


async def measure(folder: Path, questions: int, count: int, budget: float) -> dict[str, object]:
    reranker = OnnxReranker(bundled_model_dir(MODEL), name=MODEL)
    bare = BareModel.open(bundled_model_dir(MODEL))
    ratios, difference, ours, over, scored = [], 0.0, [], [], 0
    try:
        for position, (question, passages) in enumerate(candidates(folder, questions + 2, count)):
            began = time.perf_counter()
            logits = await reranker.score(question, passages, budget=UNHURRIED)
            middle = time.perf_counter()
            expected = await asyncio.to_thread(bare.score, question, passages)
            end = time.perf_counter()
            some = await reranker.score(question, passages, budget=budget)
            limited = time.perf_counter() - end
            if position < 2:  # warming up
                continue
            ratios.append((middle - began) / (end - middle))
            ours.append((middle - began) * 1000)
            difference = max(difference, *(abs((a or 0.0) - b) for a, b in zip(logits, expected, strict=True)))
            over.append(max(0.0, limited - budget) * 1000)
            scored += len(some) - some.count(None)
    finally:
        await reranker.close()
    return {
        "questions": len(ratios),
        "passages": count,
        "ours_ms_p50": round(percentile(ours, 0.5)),
        "ours_by_bare_p50": round(percentile(ratios, 0.5), 3),
        "ours_by_bare_p90": round(percentile(ratios, 0.9), 3),
        "largest_difference": round(difference, 3),
        "budget_ms": round(budget * 1000),
        "scored_within": round(scored / len(ratios), 1),
        "over_budget_ms_p50": round(percentile(over, 0.5), 1),
        "over_budget_ms_most": round(max(over), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--passages", type=int, default=20)
    parser.add_argument("--budget", type=float, default=0.8)
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given.folder, given.questions, given.passages, given.budget)), indent=2))


if __name__ == "__main__":
    main()
