"""The systemd unit of the project, read as systemd reads it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from tests.server.gateway_process import ROOT

UNIT = ROOT / "etc" / "loop-gateway.service"
HOME, PYTHON = "/opt/loop-gateway", "/opt/loop-gateway/.venv/bin/python"
# systemd.unit(5), systemd.service(5), systemd.exec(5), systemd.kill(5), of version 247 and later.
KNOWN = {
    "Unit": {"Description", "Documentation", "Wants", "After"},
    "Service": {
        "AmbientCapabilities", "CapabilityBoundingSet", "Environment", "EnvironmentFile",
        "ExecReload", "ExecStart", "Group", "KillMode", "LimitNOFILE", "LockPersonality",
        "NoNewPrivileges", "OOMPolicy", "PrivateTmp", "ProtectClock", "ProtectControlGroups",
        "ProtectHome", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules",
        "ProtectKernelTunables", "ProtectProc", "ProtectSystem", "RemoveIPC", "Restart",
        "RestartSec", "RestrictAddressFamilies", "RestrictNamespaces", "RestrictRealtime",
        "RestrictSUIDSGID", "StateDirectory", "StateDirectoryMode", "SystemCallArchitectures",
        "SystemCallErrorNumber", "SystemCallFilter", "TimeoutStopSec", "Type", "UMask", "User",
        "WorkingDirectory"},
    "Install": {"WantedBy"},
}


class ServiceUnit:
    """A unit file; raises AssertionError for a line that no systemd would understand."""

    def __init__(self, text: str) -> None:
        self._values: list[tuple[str, str, str]] = []
        section = ""
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("[") and line.endswith("]"):
                section = line[1:-1]
                assert section in KNOWN, line
            elif line and line[0] not in "#;":
                key, equals, value = line.partition("=")
                assert equals and key in KNOWN[section], line
                self._values.append((section, key, value))

    def all(self, key: str) -> list[str]:
        """Every value of a key of [Service], in order."""
        return [value for section, found, value in self._values
                if (section, found) == ("Service", key)]

    def one(self, key: str) -> str:
        """The one value of a key of [Service]."""
        [found] = self.all(key)
        return found

    def command(self, key: str, **variables: str) -> list[str]:
        """A command line with these variables in it."""
        words = shlex.split(self.one(key))
        return [variables.get(word.removeprefix("$"), word) for word in words]

    def environment(self) -> dict[str, str]:
        """The variables that it sets."""
        words = [word for line in self.all("Environment") for word in shlex.split(line)]
        return dict(word.split("=", 1) for word in words)


def installed(directory: Path) -> str:
    """The unit's text as if the project were installed here, with its configuration there."""
    text = UNIT.read_text(encoding="utf-8").replace(PYTHON, sys.executable)
    text = text.replace("/etc/loop-gateway", str(directory))
    return text.replace(HOME, str(ROOT)).replace("/var/lib/loop-gateway", str(directory / "home"))
