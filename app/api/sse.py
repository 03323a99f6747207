"""Reads an event stream as it arrives (WHATWG HTML, section 9.2.6), as bytes and not as text."""

_BOM = b"\xef\xbb\xbf"
_LINE_ENDS = (b"\n", b"\r")


class EventParser:
    """Finds the events of one stream in its pieces, however they are cut; keeps nothing but data.

    Takes time linear in what is fed. ``error`` is no field of the format, but llama-server used to
    say ``error: {…}`` where it now says ``data: {"error": {…}}``: with ``error_lines`` the first is
    given as the second; else it is passed over, as clients do.
    """

    def __init__(self, error_lines: bool = False) -> None:
        self._error_lines = error_lines
        self._line: list[bytes] = []  # the line that is not ended yet
        self._data: list[bytes] = []  # of the event that is not ended yet
        self._first = True            # no line is ended yet
        self._returned = False        # the last byte was \r, and a \n that follows belongs to it

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of each event that this piece ends, its data lines joined by newlines."""
        if self._returned and piece:
            piece = piece.removeprefix(b"\n")
            self._returned = False
        if not piece:
            return []
        lines = piece.splitlines()  # of bytes: at \n, \r\n and \r only
        if piece.endswith(_LINE_ENDS):
            self._returned = piece.endswith(b"\r")
            return self._read(self._completed(lines, []))
        tail = lines.pop()
        if not lines:
            self._line.append(tail)
            return []
        return self._read(self._completed(lines, [tail]))

    def finish(self) -> list[bytes]:
        """The data of a last event whose end did not come; call it when the stream has ended."""
        events = self._read(self._completed([b""], []))
        return events or self._read([b""])

    def _completed(self, lines: list[bytes], rest: list[bytes]) -> list[bytes]:
        """These lines, of which the first may have begun in earlier pieces; ``rest`` stays open."""
        if self._line:
            lines[0] = b"".join((*self._line, lines[0]))
        self._line = rest
        if self._first:
            lines[0] = lines[0].removeprefix(_BOM)
            self._first = False
        return lines

    def _read(self, lines: list[bytes]) -> list[bytes]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6 if line.startswith(b"data: ") else 5:])
            elif not line:
                if self._data:
                    events.append(b"\n".join(self._data))
                    self._data = []
            elif line == b"data":
                self._data.append(b"")
            elif self._error_lines and line.startswith(b"error:"):
                self._data.append(b'{"error":%b}' % line[6:])
        return events
