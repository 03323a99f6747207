"""Which keys there are and how each is read: the names of ``app.settings``, in kebab-case."""

from collections.abc import Mapping
from typing import Union

from app.config import access, values
from app.config.values import Reader, optional

Section = Mapping[str, Union[Reader, "Section"]]

SERVER: Section = {
    "address": values.text,
    "port": values.integer(1, 65535),
    "threads": values.integer(1, 10000),
    "max-body": values.size,
    "body-timeout": values.duration,
    "write-timeout": values.duration,
    "stop-timeout": values.duration,
    "allow-anonymous": values.boolean,
    "allowed-hosts": access.hosts_of,
    "cors-origins": access.origins_of,
    "ollama-version": values.version,
    "log-format": values.one_of("json", "text"),
    "allow-remote-media": values.boolean,
    "rate-storage": access.storage,
    "one-cpu": values.boolean,
}

ENGINE: Section = {
    "url": values.url,
    "command": values.command,
    "models": values.some_texts,
    "api-key": optional(values.secret),
    "connect-timeout": optional(values.duration),
    "read-timeout": optional(values.duration),
    "slots": optional(values.integer(1, 10000)),
    "kind": optional(values.one_of("llama-server", "openai")),
    "max-choices": optional(values.integer(1, 1000)),
    "start-timeout": values.duration,
    "stop-timeout": values.duration,
    "pinned": values.boolean,
    "preload": values.boolean,
    "strikes": values.integer(1, 1000),
}

QUEUE: Section = {"size": values.integer(0, 100000), "max-wait": values.duration}

LOOP: Section = {
    "home": values.path,
    "connect-timeout": values.duration,
    "read-timeout": values.duration,
    "keep-alive": values.duration,
    "default-model": optional(values.text),
    "aliases": values.mapping,
    "engines": values.items,  # each read by ENGINE
    "queue": QUEUE,
    "memory-budget": optional(values.size),
    "min-residency": values.duration,
    "probe-interval": values.duration,
}

KEY: Section = {
    "name": access.name,
    "sha256": access.sha256,
    "models": values.texts,
    "scopes": access.scopes,
    "rate": optional(access.rate),
    "concurrency": optional(values.integer(1, 100000)),
    "max-priority": access.priority,
    "expires": optional(access.moment),
}

ROOT: Section = {
    "server": SERVER,
    "loop": LOOP,
    "keys": values.items,  # each read by KEY
    "keys-file": optional(values.path),
}
