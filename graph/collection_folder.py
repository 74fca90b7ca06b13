"""The folder of one vector collection: what it was made with, and which of its data is current."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from graph.errors import StoreCorruptError, StoreFullError, StoreVersionError
from graph.home import write_atomically
from graph.storable import storable

STAMP = "collection.json"
ROOM = 64 * 1024 * 1024
"""Bytes that must be free. The engine writes through memory maps, and one that finds no block on a full disk
kills the process (SIGBUS). Opening a shard fills a map of 32 MB; a batch of 128 points takes 0.7 MB."""


class CollectionFolder:
    """`collection.json` names the data folder beside it, so new data takes the place of old in one step.

    Whatever the stamp does not name is the rest of work that was cut short.
    """

    def __init__(self, folder: Path, recipe: Mapping[str, Any]) -> None:
        self.folder = folder
        self._recipe = dict(recipe)

    @property
    def exists(self) -> bool:
        return (self.folder / STAMP).exists()

    def current(self) -> Path:
        """Where the data is. Raises `StoreVersionError` where it was not made with this recipe."""
        stamp = self.folder / STAMP
        try:
            said = json.loads(stamp.read_bytes())
            made_with, data = dict(said["recipe"]), self.folder / str(said["data"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreCorruptError(f"{stamp} cannot be read; restore it, or run `trivet ingest --rebuild`.") from error
        if made_with != self._recipe:
            differing = sorted(key for key in self._recipe if made_with.get(key) != self._recipe[key])
            raise StoreVersionError(
                f"The vectors in {self.folder} were made with {_listed(made_with, differing)} and the settings say "
                f"{_listed(self._recipe, differing)}; run `trivet ingest --rebuild`, or change the setting back."
            )
        return data

    def fresh(self) -> Path:
        """A new place for data, which nothing knows until `make_current`."""
        current = self.current().name if self.exists else ""
        self.remove_all_but(current)
        return self.folder / ("data-1" if current == "data-2" else "data-2")

    def make_current(self, data: Path) -> None:
        write_atomically(self.folder / STAMP, json.dumps({"recipe": self._recipe, "data": data.name}, indent=2) + "\n")

    def remove_all_but(self, current: str) -> None:
        for other in self.folder.glob("data-*"):
            if other.name != current:
                shutil.rmtree(other, ignore_errors=True)


def folder_name(collection: str) -> str:
    """Any name as that of a folder that is no other's and lies nowhere else."""
    return quote(storable(collection), safe="").replace(".", "%2E")


def check_room(folder: Path, needed: int) -> None:
    """Raises `StoreFullError` unless `needed` bytes and the reserve are free where the folder is, or will be."""
    place = next(each for each in (folder, *folder.parents) if each.exists())
    disk = os.statvfs(place)
    free = disk.f_bavail * disk.f_frsize
    if free < ROOM + needed:
        raise StoreFullError(
            f"Only {free // 2**20:,} MB are free at {folder} and the vector store needs "
            f"{(ROOM + needed) // 2**20:,} MB; free some space and run it again."
        )


def sync_files(folder: Path) -> None:
    """Wait until the disk has the files of a folder and their names, mapped pages included."""
    for path in (*folder.iterdir(), folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def size_of(folder: Path) -> int:
    """Bytes its files pretend to have: a copy may fill their holes."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _listed(recipe: Mapping[str, Any], keys: Iterable[str]) -> str:
    return ", ".join(f"{key} {json.dumps(recipe.get(key))}" for key in keys)
