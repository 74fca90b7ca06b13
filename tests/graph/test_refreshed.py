"""What takes seconds to make is made beside those who use the old one."""

from __future__ import annotations

import threading
import time

import pytest

from graph.refreshed import Refreshed

LONG = 10.0


class Source:
    """Versions, each made when it is let through."""

    def __init__(self) -> None:
        self.version = 1
        self.made: list[int] = []
        self.open = threading.Event()
        self.open.set()

    def make(self) -> int:
        version = self.version
        assert self.open.wait(LONG)
        self.made.append(version)
        return version

    def read(self, refreshed: Refreshed[int]) -> int:
        return refreshed.get(lambda held: held == self.version, self.make)


def test_it_is_made_again_when_it_has_changed_and_not_before() -> None:
    source, refreshed = Source(), Refreshed[int]()
    assert [source.read(refreshed), source.read(refreshed)] == [1, 1]
    source.version = 2
    assert source.read(refreshed) == 2
    assert source.made == [1, 2]


def test_who_is_not_patient_gets_the_old_one_and_later_the_new_one() -> None:
    source, refreshed = Source(), Refreshed[int](patience=0.05)
    source.read(refreshed)
    source.open.clear()
    source.version = 2
    assert source.read(refreshed) == 1
    source.open.set()
    end = time.monotonic() + LONG
    while source.read(refreshed) != 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    refreshed.close()
    assert source.made == [1, 2]


def test_who_is_patient_enough_gets_the_new_one() -> None:
    source, refreshed = Source(), Refreshed[int](patience=LONG)
    source.read(refreshed)
    for version in (2, 3, 4):
        source.version = version
        assert source.read(refreshed) == version
    refreshed.close()


def test_a_burst_makes_it_once() -> None:
    source, refreshed = Source(), Refreshed[int](patience=LONG)
    source.read(refreshed)
    source.open.clear()
    source.version = 2
    got: list[int] = []
    readers = [threading.Thread(target=lambda: got.append(source.read(refreshed))) for _ in range(8)]
    for reader in readers:
        reader.start()
    time.sleep(0.05)
    source.open.set()
    for reader in readers:
        reader.join(LONG)
    refreshed.close()
    assert got == [2] * 8
    assert source.made == [1, 2]


def test_after_a_long_making_there_is_rest() -> None:
    source, refreshed = Source(), Refreshed[int](patience=0.01)
    source.read(refreshed)
    source.open.clear()
    source.version = 2
    assert source.read(refreshed) == 1
    time.sleep(0.5)
    source.open.set()
    refreshed.close()  # it has been made now, and took half a second
    source.version = 3
    assert source.read(refreshed) == 2
    assert source.made == [1, 2]


def test_what_goes_wrong_is_raised_and_tried_again() -> None:
    refreshed = Refreshed[int](patience=LONG)
    refreshed.get(lambda held: True, lambda: 1)
    with pytest.raises(ZeroDivisionError):
        refreshed.get(lambda held: False, lambda: 1 // 0)
    assert refreshed.get(lambda held: held == 2, lambda: 2) == 2
    refreshed.close()
