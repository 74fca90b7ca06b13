"""A BEIR-style folder's questions: with their relevant documents, their answers, or with none at all."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graph.errors import SourceError

GROUP_KEYS = ("type", "hops", "level", "lang", "category")
"""What the metadata of a question may say of its kind; figures are given for each value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """A question and the documents that answer it; none for one that the set cannot answer."""

    id: str
    text: str
    gold: frozenset[str] = frozenset()
    answers: tuple[str, ...] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    """Key of the metadata → value, as "hops" → "2"."""


def read_questions(folder: Path) -> list[JudgedQuestion]:
    """The questions that have a gold document, in file order. Raises `SourceError`."""
    gold = read_qrels(folder)
    path = folder / "queries.jsonl"
    if not path.is_file():
        raise SourceError(
            f"{folder} has no queries.jsonl: a BEIR-style folder needs corpus.jsonl, queries.jsonl and qrels"
        )
    questions = [question for question in _read(path, gold) if question.gold]
    if not questions:
        raise SourceError(f"{folder} has no question with a relevant document; check its qrels")
    return questions


def read_unanswerable(folder: Path) -> list[JudgedQuestion]:
    """The questions that no document of the set answers; empty where the folder has no `unanswerable.jsonl`."""
    path = folder / "unanswerable.jsonl"
    return list(_read(path, {})) if path.is_file() else []


def _read(path: Path, gold: Mapping[str, set[str]]) -> Iterator[JudgedQuestion]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            query = json.loads(line)
            key, text = str(query["_id"]), str(query["text"])
            answers = tuple(str(answer) for answer in query.get("answers") or ())
            metadata = dict(query.get("metadata") or {})
        except (ValueError, KeyError, TypeError) as error:
            raise SourceError(f"{path}:{number} is not a question: {error}") from error
        yield JudgedQuestion(
            id=key,
            text=text,
            gold=frozenset(gold.get(key, ())),
            answers=answers,
            groups={name: str(metadata[name]) for name in GROUP_KEYS if metadata.get(name) not in (None, "")},
        )


def read_qrels(folder: Path) -> dict[str, set[str]]:
    """Question id → ids of its relevant documents, from `qrels.tsv` or BEIR's `qrels/test.tsv`."""
    path = next((p for p in (folder / "qrels.tsv", folder / "qrels" / "test.tsv") if p.is_file()), None)
    if path is None:
        raise SourceError(f"{folder} has neither qrels.tsv nor qrels/test.tsv, so nothing can be measured")
    gold: dict[str, set[str]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            try:
                relevant = float(row["score"]) > 0
                key, document = row["query-id"], row["corpus-id"]
            except (KeyError, TypeError, ValueError) as error:
                raise SourceError(f"{path} must have the columns query-id, corpus-id and score: {error!r}") from error
            if relevant:
                gold.setdefault(key, set()).add(document)
    return gold


def corpus_fingerprint(folder: Path) -> str:
    """Tells two corpora apart, also two of one name."""
    with (folder / "corpus.jsonl").open("rb") as corpus:
        return hashlib.file_digest(corpus, "sha256").hexdigest()[:16]


def questions_fingerprint(questions: Sequence[JudgedQuestion]) -> str:
    """Tells whether two runs asked the same: ids, texts and gold documents, in order."""
    asked = [[question.id, question.text, *sorted(question.gold)] for question in questions]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]
