"""A thread that keeps to one CPU, and what it starts on all of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

EVERY = os.sched_getaffinity(0)
LOOK = "import os; print(sorted(os.sched_getaffinity(0)))"
SCRIPT = f"""
import os, subprocess, sys, threading
from app.cpus import keep_to_one, on_every
def look():
    print(sorted(os.sched_getaffinity(0)), flush=True)
def child():
    subprocess.run([sys.executable, "-c", {LOOK!r}], check=True)
with on_every():
    look()
keep_to_one()
look()
thread = threading.Thread(target=look); thread.start(); thread.join()
with on_every():
    look()
    child()
look()
child()
"""


@pytest.mark.skipif(len(EVERY) < 2, reason="there is one CPU only")
def test_one_and_all() -> None:
    """Threads that are started later keep to it as well; processes as whoever starts them."""
    said = subprocess.check_output([sys.executable, "-c", SCRIPT], text=True).splitlines()
    every, one, of_thread, within, of_child, again, of_other = said
    assert every == within == of_child == str(sorted(EVERY))
    assert one == of_thread == again == of_other
    assert one in {f"[{cpu}]" for cpu in EVERY}
