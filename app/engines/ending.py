"""How a process ended, in words."""

import signal


def ending(code: int) -> str:
    """What `code` says (negative: a signal, as `subprocess` has it): `ended with exit code 3`."""
    return f"ended with exit code {code}" if code >= 0 else f"was ended by {_name(-code)}"


def _name(signum: int) -> str:
    try:
        return signal.Signals(signum).name
    except ValueError:
        return f"signal {signum}"
