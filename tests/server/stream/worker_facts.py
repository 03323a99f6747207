"""What a gateway's worker process holds, as its kernel counts it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.server.gateway_process import GatewayProcess


class WorkerFacts:
    """The one worker of a gateway."""

    def __init__(self, gateway: GatewayProcess) -> None:
        [self.pid] = gateway.workers()
        self._directory = Path(f"/proc/{self.pid}")

    def threads(self) -> int:
        """How many threads it has."""
        return len(os.listdir(self._directory / "task"))

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(self._directory / "fd"))

    def resident(self) -> int:
        """Bytes of memory it has now."""
        return self._kilobytes("VmRSS:") * 1024

    def peak(self) -> int:
        """The most bytes of memory it has had since `forget_peak`."""
        return self._kilobytes("VmHWM:") * 1024

    def forget_peak(self) -> None:
        """Let `peak` begin with what it has now."""
        (self._directory / "clear_refs").write_text("5", encoding="ascii")

    def _kilobytes(self, field: str) -> int:
        status = (self._directory / "status").read_text(encoding="utf-8")
        [line] = [line for line in status.splitlines() if line.startswith(field)]
        return int(line.split()[1])
