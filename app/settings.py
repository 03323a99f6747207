"""What can be set: frozen values with their defaults. How they are read is ``app.config``.

Durations are seconds, sizes bytes.
"""

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

MIB = 1024 * 1024
BUILTIN = ("builtin",)  # the command of the built-in engine


@dataclass(frozen=True)
class ServerSettings:
    """The side that clients see."""

    address: str = "127.0.0.1"
    port: int = 11434
    threads: int = 256
    max_body: int = 64 * MIB
    body_timeout: float = 60.0
    write_timeout: float = 60.0
    stop_timeout: float = 30.0
    allow_anonymous: bool = False
    allowed_hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    ollama_version: str = "0.33.0"
    allow_remote_media: bool = False
    rate_storage: str = field(default="memory://", repr=False)
    log_format: str = "json"
    one_cpu: bool = True


@dataclass(frozen=True)
class EngineSettings:
    """One model server and the registry names it serves (``fnmatch`` globs).

    Either ``url``, of one that runs, or ``command``, which starts one for each of its models.
    """

    url: str
    models: tuple[str, ...]
    api_key: str | None = field(default=None, repr=False)
    connect_timeout: float | None = None
    read_timeout: float | None = None
    slots: int | None = None
    kind: str | None = None
    max_choices: int | None = None
    start_timeout: float = 120.0
    stop_timeout: float = 10.0
    pinned: bool = False
    preload: bool = False
    strikes: int = 3
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueueSettings:
    """The queue in front of each engine."""

    size: int = 64
    max_wait: float = 60.0


@dataclass(frozen=True)
class LoopSettings:
    """The side that engines and the registry are on."""

    home: Path = field(default_factory=lambda: Path("~/.loop").expanduser())
    connect_timeout: float = 2.0
    read_timeout: float = 120.0
    keep_alive: float = 300.0
    default_model: str | None = None
    aliases: dict[str, str] = field(default_factory=dict)
    engines: tuple[EngineSettings, ...] = ()
    queue: QueueSettings = field(default_factory=QueueSettings)
    memory_budget: int | None = None
    min_residency: float = 5.0
    probe_interval: float = 10.0


@dataclass(frozen=True)
class KeySettings:
    """Who has a key, by its SHA-256 in hex digits, and what may be done with it.

    ``models`` are ``fnmatch`` globs of registry names; ``rate`` is a count, a slash and a unit of
    time; from ``expires`` on, a time with its zone, the key is worth nothing.
    """

    name: str
    sha256: str = field(repr=False)
    models: tuple[str, ...] = ("*",)
    scopes: tuple[str, ...] = ("infer",)
    rate: str | None = None
    concurrency: int | None = None
    max_priority: str = "HIGH"
    expires: datetime | None = None


@dataclass(frozen=True)
class Settings:
    """The whole validated configuration."""

    server: ServerSettings = field(default_factory=ServerSettings)
    loop: LoopSettings = field(default_factory=LoopSettings)
    keys: tuple[KeySettings, ...] = ()
    keys_file: Path | None = None
