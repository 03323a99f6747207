"""Builds the application: the only place that wires things together."""

from datetime import datetime, timezone

from flask import Flask

from prometheus_client import CollectorRegistry, Info, ProcessCollector

from app.api import (
    engines, errors, metrics, native, ops, place, recording, request_id, security, server_timing,
    upstream,
)
from app.api.juno import routes as juno
from app.api.ollama import routes as ollama
from app.api.openai import routes as openai
from app.api.openapi import routes as openapi
from app.api.security.browsers import Browsers
from app.api.security.quotas import Quotas
from app.api.security.rates import Concurrency, Rates
from app.api.services import Services
from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.admission import Admission, QueueRules
from app.engines.client import EngineClient
from app.engines.command import Surroundings
from app.engines.engine import Attached
from app.engines.failures import Limits
from app.engines.fleet import Entry, Fleet
from app.engines.loaded import Clock, LoadedModels
from app.engines.own_metrics import OwnMetrics
from app.engines.prober import Prober
from app.engines.props import LIMITS
from app.engines.router import Served
from app.engines.status import Status
from app.engines.supervisor import Supervisor
from app.engines.unit_facts import Rules
from app.gateway import Engines, Gateway, Names
from app.hosts import AllowedHosts
from app.keys import KeyRing
from app.origins import AllowedOrigins
from app.settings import EngineSettings, Settings
from app.telemetry import build
from app.telemetry.access_log import AccessLog
from app.telemetry.engine_collector import EngineCollector
from app.telemetry.exposition import MetricsPage
from app.telemetry.metrics import RequestMetrics
from app.telemetry.observer import Observer


def utc_now() -> datetime:
    """The time with its zone."""
    return datetime.now(timezone.utc)


def create_app(
    settings: Settings, clock: Clock = utc_now, access_log: AccessLog | None = None
) -> Flask:
    """The WSGI application for these settings. Starts nothing and reads no environment.

    Without an ``access_log`` no request is logged.
    """
    app = Flask("loop-gateway", static_folder=None)
    app.url_map.merge_slashes = False  # a model name may hold two slashes; redirects help nobody
    app.config["MAX_BODY"] = settings.server.max_body
    app.config["ALLOW_REMOTE_MEDIA"] = settings.server.allow_remote_media
    app.extensions["loop"] = services = _services(settings, clock)
    counted = RequestMetrics()
    recording.register(app, Observer(counted, access_log))
    optional = settings.loop.default_model is not None
    app.register_blueprint(openai.blueprint(model_optional=optional))
    app.register_blueprint(juno.blueprint(model_optional=optional))
    app.register_blueprint(ollama.blueprint(settings.server.ollama_version))
    app.register_blueprint(native.blueprint())
    app.register_blueprint(upstream.blueprint())
    app.register_blueprint(engines.blueprint())
    app.register_blueprint(ops.blueprint())
    app.register_blueprint(metrics.blueprint(_metrics_page(counted, services.gateway)))
    app.register_blueprint(openapi.blueprint(model_optional=optional))
    security.register(app, _guard(settings, clock))
    request_id.register(app)
    place.register(app)
    server_timing.register(app)
    errors.register(app)
    return app


def _metrics_page(counted: RequestMetrics, gateway: Gateway) -> MetricsPage:
    """The page of what is counted, what engines are doing, and what they say of themselves."""
    registry = CollectorRegistry()
    registry.register(counted)
    registry.register(EngineCollector(gateway.status.engines, gateway.memory))
    Info("loop_build", "Which gateway this is", registry=registry).info(
        {"version": build.version(), "python": build.python()})
    ProcessCollector(registry=registry)
    return MetricsPage(registry, gateway.own_metrics.texts)


def _guard(settings: Settings, clock: Clock) -> security.Guard:
    server = settings.server
    return security.Guard(
        Browsers(AllowedHosts(server.address, server.allowed_hosts),
                 AllowedOrigins(server.cors_origins)),
        KeyRing(settings.keys, matching=lambda globs: Served(globs).matches),
        Quotas(Rates(server.rate_storage), Concurrency()),
        clock,
    )


def _services(settings: Settings, clock: Clock) -> Services:
    loop = settings.loop
    registry, facts = Registry(loop.home), FactsCache()
    queue = QueueRules(loop.queue.size, loop.queue.max_wait)
    rules = Rules(loop.memory_budget, loop.min_residency, loop.queue.max_wait)
    supervisor = Supervisor(rules, queue, loop.keep_alive)
    around = Surroundings(registry, facts, loop.home, _limits(EngineSettings("", ()), settings),
                          settings.server.threads)
    entries = [_entry(index, engine, settings) for index, engine in enumerate(loop.engines)]
    fleet = Fleet(entries, supervisor, around)
    used = LoadedModels(loop.keep_alive, clock)
    prober = Prober(fleet, supervisor, loop.probe_interval)
    parts = Engines(fleet, supervisor, used, Status(fleet, used, clock), prober,
                    OwnMetrics(fleet, used))
    names = Names(loop.aliases, loop.default_model)
    gateway = Gateway(parts, names, registry, settings.server.threads)
    return Services(gateway, registry, facts)


def _entry(index: int, engine: EngineSettings, settings: Settings) -> Entry:
    served = Served(engine.models)
    if engine.command:
        return Entry(served, command=engine, place=f"loop.engines[{index}]")
    client = EngineClient(engine.url, engine.api_key, _limits(engine, settings),
                          connections=settings.server.threads)
    asker = EngineClient(engine.url, engine.api_key, LIMITS, connections=4)
    queue = settings.loop.queue
    admission = Admission(QueueRules(queue.size, queue.max_wait), engine.slots)
    return Entry(served, Attached(engine, client, asker, admission))


def _limits(engine: EngineSettings, settings: Settings) -> Limits:
    return Limits(
        connect=engine.connect_timeout or settings.loop.connect_timeout,
        read=engine.read_timeout or settings.loop.read_timeout,
    )
