"""What readers say of answers in SQLite, in a file of its own: a rebuild of the store keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from graph.feedback import Feedback
from graph.sqlite_file import SqliteFile
from graph.storable import storable

FORMAT = 1
KEPT = 10_000
"""The oldest beyond so many are forgotten."""
SCHEMA = """
CREATE TABLE feedback (
    number INTEGER PRIMARY KEY AUTOINCREMENT, answer_id TEXT NOT NULL UNIQUE, rating TEXT NOT NULL,
    comment TEXT NOT NULL, wrong_citations TEXT NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL,
    persona TEXT NOT NULL, mode TEXT NOT NULL, created TEXT NOT NULL)"""
PUT = """
INSERT INTO feedback (answer_id, rating, comment, wrong_citations, question, answer, persona, mode, created)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"""


class SqliteFeedback:
    """`FeedbackStore` on one file."""

    def __init__(self, path: Path, *, kept: int = KEPT) -> None:
        self._file = SqliteFile(path, schema=SCHEMA, version=FORMAT)
        self._kept = kept

    def close(self) -> None:
        self._file.close()

    def put(self, feedback: Feedback) -> Feedback:
        values = (
            feedback.answer_id, feedback.rating, feedback.comment, json.dumps(feedback.wrong_citations),
            feedback.question, feedback.answer, feedback.persona, feedback.mode, feedback.created,
        )  # fmt: skip
        with self._file.writing() as connection:
            connection.execute("DELETE FROM feedback WHERE answer_id = ?", (storable(feedback.answer_id),))
            number = connection.execute(PUT, tuple(map(storable, values))).lastrowid or 0
            connection.execute(
                "DELETE FROM feedback WHERE number <= "
                "(SELECT number FROM feedback ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (self._kept,),
            )
        return replace(feedback, number=number)

    def newest(self, limit: int, *, before: int = 0) -> Sequence[Feedback]:
        query = "SELECT * FROM feedback WHERE ?1 = 0 OR number < ?1 ORDER BY number DESC LIMIT ?2"
        with self._file.reading() as connection:
            return [_feedback(row) for row in connection.execute(query, (before, limit))]


def _feedback(row: tuple[Any, ...]) -> Feedback:
    return Feedback(
        number=row[0],
        answer_id=row[1],
        rating=row[2],
        comment=row[3],
        wrong_citations=tuple(json.loads(row[4])),
        question=row[5],
        answer=row[6],
        persona=row[7],
        mode=row[8],
        created=row[9],
    )
