"""Topics, pages, passages and facts as rows of SQLite: the tables, and there and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from graph.research import Fact, FactState, KeptPassage, ResearchPage, Topic, TopicState
from graph.storable import storable

FORMAT = 1
SCHEMA = """
CREATE TABLE topics (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT NOT NULL UNIQUE, title TEXT NOT NULL, category TEXT NOT NULL,
    focus TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL, reasons TEXT NOT NULL, deepened INTEGER NOT NULL,
    created TEXT NOT NULL, changed TEXT NOT NULL);
CREATE TABLE history (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    note TEXT NOT NULL, at TEXT NOT NULL);
CREATE INDEX history_by_topic ON history (slug, number);
CREATE TABLE pages (
    number INTEGER PRIMARY KEY AUTOINCREMENT, slug TEXT NOT NULL, url TEXT NOT NULL, title TEXT NOT NULL,
    passages TEXT NOT NULL, author TEXT NOT NULL, published TEXT NOT NULL, language TEXT NOT NULL, query TEXT NOT NULL,
    fetched TEXT NOT NULL, copies TEXT NOT NULL, UNIQUE (slug, url));
CREATE TABLE passages (
    id TEXT PRIMARY KEY, collection TEXT NOT NULL, origin TEXT NOT NULL, topic TEXT NOT NULL, url TEXT NOT NULL,
    title TEXT NOT NULL, text TEXT NOT NULL, ordinal INTEGER NOT NULL, published TEXT NOT NULL, language TEXT NOT NULL,
    category TEXT NOT NULL, expires TEXT NOT NULL, until REAL, page INTEGER, fact TEXT UNIQUE);
CREATE INDEX passages_by_collection ON passages (collection, origin, until);
CREATE INDEX passages_by_page ON passages (page, ordinal);
CREATE TABLE facts (
    id TEXT PRIMARY KEY, topic TEXT NOT NULL, category TEXT NOT NULL, text TEXT NOT NULL, quote TEXT NOT NULL,
    url TEXT NOT NULL, title TEXT NOT NULL, published TEXT NOT NULL, state TEXT NOT NULL, evergreen INTEGER NOT NULL,
    extractive INTEGER NOT NULL, support REAL NOT NULL, expires TEXT NOT NULL, version INTEGER NOT NULL,
    created TEXT NOT NULL, changed TEXT NOT NULL, changed_by TEXT NOT NULL, undoes TEXT NOT NULL);
CREATE INDEX facts_in_order ON facts (created, id);
CREATE INDEX facts_by_topic ON facts (topic);
CREATE TABLE collections (name TEXT PRIMARY KEY);
CREATE TABLE unfinished (collection TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (collection, id))"""

TOPIC, PAGE, PASSAGE, FACT = (
    tuple(field.name for field in fields(kind)) for kind in (Topic, ResearchPage, KeptPassage, Fact)
)
"""Columns are named as fields are."""
Row = tuple[Any, ...]


def columns(names: Sequence[str]) -> str:
    return ", ".join(names)


def insert(table: str, names: Sequence[str], *, known: str = "ABORT") -> str:
    """`known`: what to do where the key is known; SQLite's word for it."""
    places = ", ".join("?" * len(names))
    return f"INSERT OR {known} INTO {table} ({columns(names)}) VALUES ({places})"  # noqa: S608 — constants


def values(thing: Topic | ResearchPage | KeptPassage | Fact) -> Row:
    """In the order of its columns."""
    return tuple(_value(getattr(thing, field.name)) for field in fields(thing))


def _value(value: object) -> object:
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        value = dict(value)
    return storable(json.dumps(value, ensure_ascii=False)) if isinstance(value, dict | tuple) else value


def topic_of(row: Row) -> Topic:
    known = dict(zip(TOPIC, row, strict=True))
    known |= {"state": TopicState(known["state"]), "reasons": tuple(json.loads(known["reasons"]))}
    return Topic(**known)


def page_of(row: Row) -> ResearchPage:
    known = dict(zip(PAGE, row, strict=True))
    return ResearchPage(**known | {name: tuple(json.loads(known[name])) for name in ("passages", "copies")})


def passage_of(row: Row) -> KeptPassage:
    return KeptPassage(**dict(zip(PASSAGE, row, strict=True)))


def fact_of(row: Row) -> Fact:
    known = dict(zip(FACT, row, strict=True))
    known |= {name: bool(known[name]) for name in ("evergreen", "extractive")}
    return Fact(**known | {"state": FactState(known["state"]), "undoes": json.loads(known["undoes"])})
