"""How much memory a process may still take, so that work which can be left out is, before the system ends it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FILES = re.compile(r"^(?:total_)?(?:in)?active_file (\d+)$", re.MULTILINE)
"""Of `memory.stat`: pages of files, which are given back when others need them. Version 1 sums up in `total_…`."""


def free_memory(root: Path = Path("/")) -> int | None:
    """Bytes; the least of what the machine and each memory cgroup around this process leave. None where nobody says.

    Linux alone; both versions of cgroups. `root`: another place for `/proc` and `/sys`, for tests.
    """
    left = [*_machine(root), *_groups(root)]
    return max(0, min(left)) if left else None


def _machine(root: Path) -> Iterator[int]:
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", _read(root / "proc/meminfo"), re.MULTILINE)
    if found:
        yield int(found[1]) * 1024


def _groups(root: Path) -> Iterator[int]:
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            top, limit, usage = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        group = top / path.strip("/")
        while group.is_relative_to(top):
            allowed, used = _read(group / limit).strip(), _read(group / usage).strip()
            if allowed.isdigit() and used.isdigit():
                yield int(allowed) - int(used) + _reclaimable(_read(group / "memory.stat"))
            group = group.parent


def _reclaimable(stat: str) -> int:
    summed = [line for line in stat.splitlines() if line.startswith("total_")]
    return sum(int(size) for size in FILES.findall("\n".join(summed) or stat))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
