"""What memory is left, as Linux tells it in both versions of cgroups."""

from __future__ import annotations

from pathlib import Path

import pytest

from graph.memory_room import free_memory

MEMINFO = "MemTotal:       8000 kB\nMemAvailable:   4000 kB\n"


def system(root: Path, **files: str) -> Path:
    for name, text in {
        "proc/meminfo": MEMINFO,
        **{key.replace("__", "/"): text for key, text in files.items()},
    }.items():
        path = root / name.replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_without_a_group_it_is_the_machine_s(tmp_path: Path) -> None:
    assert free_memory(system(tmp_path)) == 4000 * 1024
    assert free_memory(system(tmp_path, proc__self__cgroup="0::/\n")) == 4000 * 1024


def test_nobody_says(tmp_path: Path) -> None:
    assert free_memory(tmp_path) is None


def test_version_2_counts_every_group_around(tmp_path: Path) -> None:
    """Pages of files in use count as free: they are given back."""
    outer = "sys__fs__cgroup__outer"
    files = {
        "proc__self__cgroup": "0::/outer/inner\n",
        f"{outer}__memory_dot_max": "1000000\n",
        f"{outer}__memory_dot_current": "900000\n",
        f"{outer}__memory_dot_stat": "anon 700000\nactive_file 50000\ninactive_file 100000\n",
        f"{outer}__inner__memory_dot_max": "max\n",
        f"{outer}__inner__memory_dot_current": "800000\n",
    }
    assert free_memory(system(tmp_path, **files)) == 250_000


def test_version_1(tmp_path: Path) -> None:
    group = "sys__fs__cgroup__memory__wiki"
    files = {
        "proc__self__cgroup": "5:cpu,cpuacct:/x\n4:memory:/wiki\n",
        f"{group}__memory_dot_limit_in_bytes": "1000000\n",
        f"{group}__memory_dot_usage_in_bytes": "990000\n",
        f"{group}__memory_dot_stat": "active_file 1\ntotal_active_file 2000\ntotal_inactive_file 3000\n",
    }
    assert free_memory(system(tmp_path, **files)) == 15_000


@pytest.mark.parametrize("limit", ["9223372036854771712", "max", ""])
def test_a_group_without_a_limit_is_none(tmp_path: Path, limit: str) -> None:
    files = {"proc__self__cgroup": "0::/a\n", "sys__fs__cgroup__a__memory_dot_max": limit}
    files["sys__fs__cgroup__a__memory_dot_current"] = "5"
    assert free_memory(system(tmp_path, **files)) == 4000 * 1024


def test_here() -> None:
    left = free_memory()
    assert left is None or left > 1_000_000
