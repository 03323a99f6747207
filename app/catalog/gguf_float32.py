"""Single-precision numbers as the Python floats a reader expects to see."""

import math
import struct

_pack = struct.Struct("<f").pack
_FORMATS = tuple(f"%.{digits}g" for digits in range(1, 9))
_SMALLEST_NORMAL = 2.0**-126
_EVERY_INTEGER_EXACT = 2.0**24


def shortest(value: float) -> float:
    """The float with the shortest decimal text that is the same float32 as `value`.

    Python would print the float32 nearest to 0.00001 as 9.999999747378752e-06; this is 1e-05.
    `value` must be exactly a float32, as struct unpacks it; what is not finite comes back as it is.
    """
    if not math.isfinite(value) or _is_small_integer(value):
        return value
    wanted = _pack(value)
    centres = _centres(value)
    # Any text of six digits survives a normal float32, so no shorter one has to be tried.
    for form in _FORMATS[5:] if abs(value) >= _SMALLEST_NORMAL else _FORMATS:
        for centre in centres:
            short = float(form % centre)
            if _pack(short) == wanted:
                return short
    return float(f"{value:.9g}")  # nine digits always suffice


def _is_small_integer(value: float) -> bool:
    return abs(value) < _EVERY_INTEGER_EXACT and value.is_integer()


def _centres(value: float) -> tuple[float, ...]:
    # The neighbour above a power of two is twice as far as the one below: a short text may lie on
    # that side only, where rounding `value` does not find it (2.0**87 is 1.5474251e+26).
    if abs(math.frexp(value)[0]) == 0.5:
        return value, value * (1 + 2.0**-26)
    return (value,)
