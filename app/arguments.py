"""Command lines whose errors repeat nothing that was written at the wrong place of them."""

import argparse
import re
from typing import NoReturn

# argparse puts the text that it refuses behind these; what else it says is about its own options.
_REFUSED = re.compile(
    r"(unrecognized arguments|ignored explicit argument|ambiguous option|invalid choice"
    r"|invalid \S+ value)\b.*?(?P<more> \(choose from .*| could match .*)?$", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser, also of subcommands, which tells no value: a key may be one.

    Whoever reads standard error is not always who wrote the command line.
    """

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end the process with status 2."""
        super().error(_REFUSED.sub(lambda found: found[1] + (found["more"] or ""), message))
