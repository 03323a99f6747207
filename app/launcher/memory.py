"""How much memory this machine has for its programs."""

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def available(proc: Path = _PROC, cgroups: Path = _CGROUPS) -> int:
    """Bytes of memory that this process and its kin may have: all there is, or a cgroup's limit.

    Source: cgroups(7), and cgroup-v1/memory and cgroup-v2 of the kernel's documentation.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_limits(proc / "self" / "cgroup", cgroups)])


def _limits(memberships: Path, cgroups: Path) -> Iterator[int]:
    """Of this process's cgroups and those above them, as far as they can be seen.

    A container may see the names of its cgroups as they are outside, and itself at the root.
    """
    for line in _text(memberships).splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, file = cgroups, "memory.max"
        elif "memory" in controllers.split(","):
            root, file = cgroups / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = PurePosixPath(path.lstrip("/"))
        for each in (group, *group.parents):
            limit = _text(root / each / file).strip()
            if limit.isdecimal():  # and not "max"
                yield int(limit)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
