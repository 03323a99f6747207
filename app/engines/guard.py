"""The process between the gateway and one managed engine, which leaves nothing of it behind.

    python -S -E -m app.engines.guard SECONDS DIRECTORY COMMAND…

It starts COMMAND in DIRECTORY, in a session of its own, and ends as the engine did (exit code or
signal) once all that the engine started is gone too, whatever session that is in: as the engine's
subreaper the guard inherits what loses its parent. Its standard input is a socket or a pipe from
the gateway, to which it first writes the engine's process id if it can. What it reads there:

    KILL            SIGKILL to all
    any other byte  SIGTERM to all, after SECONDS SIGKILL; as SIGTERM and its like to the guard
    the end         the gateway is gone: SIGTERM to all, after GRACE (or SECONDS) SIGKILL; until
                    then what they write is taken in its place, or its loss would kill them

What outlives the engine itself gets SIGTERM and GRACE as well. If the guard is killed, the kernel
kills the engine. There is one guard for each engine, for as long as that runs: hence few imports.
"""

import os
import select
import signal
import stat
import sys
import time

from app.engines.prctl import adopt_orphans, end_with_parent, leave_no_core
from app.engines.proctable import below, every, tell

STOP, KILL = b"s", b"k"
GRACE = 2.0  # s
NOT_FOUND, NOT_EXECUTABLE = 127, 126  # the exit codes that shells give
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_FIRST_LOOK, _LAST_LOOK = 0.01, 1.0  # s; pauses between looks for what survives SIGKILL


def main() -> None:
    """Run the command of the command line; does not return."""
    seconds, directory, *command = sys.argv[1:]
    channel = os.dup(0)  # the copy is not inherited
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    guard = Guard(channel, float(seconds))
    try:
        status = guard.run(directory, command)
    except OSError as error:
        _refuse(error)
    _end_like(status)


class Guard:
    """One engine, watched by this process, which must have no other children. Linux only."""

    def __init__(self, channel: int, seconds_to_stop: float) -> None:
        """`channel` is where the gateway speaks, and whose end is the gateway's end."""
        self._channel = channel
        self._seconds_to_stop = seconds_to_stop
        self._grace = min(GRACE, seconds_to_stop)
        self._output = _output_pipe()
        self._signals = _signal_pipe()
        self._poll = select.poll()
        self._poll.register(self._signals, select.POLLIN)
        self._poll.register(channel, select.POLLIN)
        self._engine = 0
        self._status: int | None = None  # of the engine, once it has ended
        self._killing: float | None = None  # when SIGKILL is due; None: nothing has to end
        self._pause = _FIRST_LOOK

    def run(self, directory: str, command: list[str]) -> int:
        """The engine's wait status; blocks until it and all it started is gone.

        Raises OSError when not even a process can be had for it.
        """
        adopt_orphans()
        self._engine = _start(directory, command)
        try:
            os.write(self._channel, b"%d\n" % self._engine)
        except OSError:
            pass  # a pipe, or the gateway is gone already, which is read next
        while self._has_children():
            if self._status is not None and self._killing is None:
                self._end_within(self._grace)
            self._listen(self._kill_if_due())
        assert self._status is not None
        return self._status

    def _has_children(self) -> bool:
        """Whether any are left, once the dead ones are reaped. An orphan is a child too."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._engine:
                    self._status = status
        except ChildProcessError:
            return False

    def _end_within(self, seconds: float) -> None:
        """Ask all to end; SIGKILL is due in `seconds`, or sooner if it was."""
        due = time.monotonic() + seconds
        if self._killing is None:
            self._killing = due
            if seconds:
                self._tell_all(signal.SIGTERM)
        self._killing = min(self._killing, due)

    def _kill_if_due(self) -> float | None:
        """For how many seconds nothing has to be done."""
        if self._killing is None:
            return None
        left = self._killing - time.monotonic()
        if left > 0:
            return left
        self._tell_all(signal.SIGKILL)  # and again, until none has forked away from it
        self._pause = min(2 * self._pause, _LAST_LOOK)
        return self._pause

    def _tell_all(self, signum: int) -> None:
        """Everyone once: a second SIGTERM means haste to some engines."""
        group = self._engine if self._status is None else 0  # once reaped it may be another's
        if group:
            try:
                os.killpg(group, signum)  # at one stroke: nobody forks away from it
            except OSError:
                group = 0  # it has no group of its own yet
        for process in below([os.getpid()], every()):
            if process.group != group:
                tell(process, signum)

    def _listen(self, seconds: float | None) -> None:
        """Wait for a signal or a word of the gateway, and do what it says."""
        for descriptor, _ in self._poll.poll(None if seconds is None else seconds * 1000 + 1):
            told = _read(descriptor)
            if descriptor == self._channel:
                self._obey(told)
            elif descriptor == self._signals and any(signum in _ENDING for signum in told):
                self._end_within(self._seconds_to_stop)

    def _obey(self, word: bytes) -> None:
        if word:
            self._end_within(0 if KILL in word else self._seconds_to_stop)
            return
        self._poll.unregister(self._channel)
        if self._output is not None:
            self._poll.register(self._output, select.POLLIN)
        self._end_within(self._grace)


def _output_pipe() -> int | None:
    """The end at which the gateway reads what we and the engine write; None if it is no pipe.

    While it is open here, no writer gets SIGPIPE when the gateway dies.
    """
    if not stat.S_ISFIFO(os.fstat(1).st_mode):
        return None
    try:
        return os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None


def _signal_pipe() -> int:
    """Where signals can be read from now on, a byte each; none of them interrupts any more."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for signum in (*_ENDING, signal.SIGCHLD):
        signal.signal(signum, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    return reader


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # a gateway that died before it had read what was written to it
        return b""


def _start(directory: str, command: list[str]) -> int:
    """The process id of the engine. Raises OSError where there can be no further process."""
    guard = os.getpid()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # one would be lost between fork and exec
    engine = os.fork()
    if engine == 0:
        try:
            _become(directory, command, guard)
        except OSError as error:
            _refuse(error)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    return engine


def _become(directory: str, command: list[str], guard: int) -> None:
    """Go on as the engine; returns by OSError only."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for signum in (*_ENDING, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    os.chdir(directory)
    end_with_parent(signal.SIGKILL, guard)
    os.execvp(command[0], command)


def _refuse(error: OSError) -> None:
    """End, having said why; without the program's name, since clients may get to read it."""
    os.write(2, f"the engine's command cannot be executed: {error.strerror}\n".encode())
    missing = isinstance(error, (FileNotFoundError, NotADirectoryError))
    os._exit(NOT_FOUND if missing else NOT_EXECUTABLE)


def _end_like(status: int) -> None:
    """End as a process with this wait status did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        leave_no_core()
        if -code in _ENDING:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()
