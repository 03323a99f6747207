"""The memory of this machine is what a cgroup leaves of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.launcher.memory import available

PHYSICAL = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
UNLIMITED = "9223372036854771712"  # as cgroup v1 says it


@pytest.mark.parametrize("memberships,limits,expected", [
    ("", {}, PHYSICAL),
    ("0::/\n", {}, PHYSICAL),
    ("0::/\n", {"memory.max": "max\n"}, PHYSICAL),
    ("0::/\n", {"memory.max": "4096000\n"}, 4096000),
    ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "8192\n"}, 8192),
    ("0::/a/b\n", {"a/b/memory.max": "4096\n", "a/memory.max": "8192\n"}, 4096),
    ("0::/unseen/from/inside\n", {"memory.max": "4096\n"}, 4096),
    ("0::/a\n", {"b/memory.max": "4096\n"}, PHYSICAL),
    ("5:memory:/\n", {"memory/memory.limit_in_bytes": f"{UNLIMITED}\n"}, PHYSICAL),
    ("5:cpu,memory:/a\n4:cpuset:/b\n0::/\n", {"memory/a/memory.limit_in_bytes": "4096\n"}, 4096),
    ("5:memory:/docker/1\n", {"memory/memory.limit_in_bytes": "4096\n"}, 4096),
    ("4:cpu:/a\n", {"memory/a/memory.limit_in_bytes": "4096\n"}, PHYSICAL),
    ("0::/odd:name\n", {"odd:name/memory.max": "4096\n"}, 4096),
    ("1:name=systemd:/\n", {"memory.max": "4096\n"}, PHYSICAL),
])
def test_the_smallest_limit_counts(
        tmp_path: Path, memberships: str, limits: dict[str, str], expected: int) -> None:
    """Of version 1 or 2, at this process's cgroup or above it; without one it is all there is."""
    files = {"proc/self/cgroup": memberships} | {f"sys/{name}": text
                                                 for name, text in limits.items()}
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert available(tmp_path / "proc", tmp_path / "sys") == expected


def test_of_this_machine_it_is_known() -> None:
    """There is some, and no more than the machine has."""
    assert 0 < available() <= PHYSICAL
    assert available(Path("/nowhere"), Path("/nowhere")) == PHYSICAL
