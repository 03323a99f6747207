"""What scripts/openapi runs: writes docs/openapi.yaml, the document of GET /openapi.json.

    python -m app.launcher.openapi [FILE]
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from app.engines.lifeline import ROOT
from app.factory import create_app
from app.settings import Settings

CHECKED_IN = ROOT / "docs" / "openapi.yaml"


def document() -> Any:
    """What a gateway with the default configuration answers."""
    return create_app(Settings()).test_client().get("/openapi.json").json


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file; returns the exit status."""
    given = sys.argv[1:] if arguments is None else arguments
    file = Path(given[0]) if given else CHECKED_IN
    text = yaml.safe_dump(document(), sort_keys=False, allow_unicode=True, width=100)
    file.write_text(text, encoding="utf-8")
    print(file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
