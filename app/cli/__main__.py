"""``python -m app.cli``."""

import os
import sys
from io import TextIOWrapper

from app.cli import main
from app.telemetry import log

log.configure("text")
for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # file names need not be UTF-8
try:
    status = main()
    sys.stdout.flush()
except BrokenPipeError:  # whoever read what is printed has enough
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    status = 1
sys.exit(status)
