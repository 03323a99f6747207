"""Builds the application: the only place that wires things together."""

from dataclasses import replace
from datetime import datetime, timezone

from flask import Flask
from prometheus_client import CollectorRegistry, Info, ProcessCollector

from app.api import (
    engines, errors, metrics, native, ops, paths, place, recording, request_id, security,
    server_timing, upstream,
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
from app.engines.admission import QueueRules
from app.engines.command import Surroundings
from app.engines.fleet import Entry, Fleet, Owners
from app.engines.loaded import Clock, LoadedModels
from app.engines.policy import Policy, PolicyInForce
from app.engines.prober import Prober
from app.engines.router import Served
from app.engines.status import Status
from app.engines.stock import Stock
from app.engines.supervisor import Supervisor
from app.gateway import Gateway
from app.hosts import AllowedHosts
from app.keys import KeyRing
from app.origins import AllowedOrigins
from app.routes import Lasting, Names, Routes
from app.settings import EngineSettings, LoopSettings, Settings
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
    return Assembly(settings, clock, access_log).app(settings)


class Assembly:
    """Makes of one configuration after another an application and routes for the one gateway.

    What an application holds is gone with it; what has to outlive its configuration is made here.
    """

    def __init__(self, settings: Settings, clock: Clock, access_log: AccessLog | None) -> None:
        """Home, threads and the storage of rates are those of ``settings`` for good."""
        loop, threads = settings.loop, settings.server.threads
        self._clock = clock
        self._facts = FactsCache()
        policy = PolicyInForce(_policy(loop))
        self._lasting = Lasting(
            Registry(loop.home), Supervisor(policy), LoadedModels(policy.keep_alive, clock), policy)
        self._owners = Owners(Stock(policy, threads), self._lasting.supervisor)
        self._around = Surroundings(self._lasting.registry, self._facts, loop.home, threads)
        self.gateway = Gateway(self.routes(settings), self._lasting, threads)
        self._quotas = Quotas(Rates(settings.server.rate_storage), Concurrency())
        counted = RequestMetrics()
        self._observer = Observer(counted, access_log)
        self._page = _metrics_page(counted, self.gateway)

    def routes(self, settings: Settings) -> Routes:
        """What the settings make of names and engines, for the gateway to adopt."""
        loop, lasting = settings.loop, self._lasting
        fleet = Fleet([_entry(engine, loop) for engine in loop.engines], self._owners, self._around)
        return Routes(
            Names(loop.aliases, loop.default_model), fleet,
            Status(fleet, lasting.used, self._clock),
            Prober(fleet, lasting.supervisor, loop.probe_interval), _policy(loop))

    def app(self, settings: Settings) -> Flask:
        """An application for the settings, in front of the gateway as it is."""
        app = Flask("loop-gateway", static_folder=None)
        app.url_map.merge_slashes = False  # a model name may hold two slashes
        app.config["MAX_BODY"] = settings.server.max_body
        app.config["BODY_TIMEOUT"] = settings.server.body_timeout
        app.config["ALLOW_REMOTE_MEDIA"] = settings.server.allow_remote_media
        app.extensions["loop"] = Services(self.gateway, self._lasting.registry, self._facts)
        paths.register(app)
        recording.register(app, self._observer)
        _add_routes(app, settings)
        app.register_blueprint(metrics.blueprint(self._page))
        security.register(app, self._guard(settings))
        request_id.register(app)
        place.register(app)
        server_timing.register(app)
        errors.register(app)
        return app

    def _guard(self, settings: Settings) -> security.Guard:
        server = settings.server
        return security.Guard(
            Browsers(AllowedHosts(server.address, server.allowed_hosts),
                     AllowedOrigins(server.cors_origins)),
            KeyRing(settings.keys, matching=lambda globs: Served(globs).matches),
            self._quotas, self._clock)


def _add_routes(app: Flask, settings: Settings) -> None:
    optional = settings.loop.default_model is not None
    app.register_blueprint(openai.blueprint(model_optional=optional))
    app.register_blueprint(juno.blueprint(model_optional=optional))
    app.register_blueprint(ollama.blueprint(settings.server.ollama_version))
    app.register_blueprint(native.blueprint())
    app.register_blueprint(upstream.blueprint())
    app.register_blueprint(engines.blueprint())
    app.register_blueprint(ops.blueprint())
    app.register_blueprint(openapi.blueprint(model_optional=optional))


def _metrics_page(counted: RequestMetrics, gateway: Gateway) -> MetricsPage:
    """The page of what is counted, what engines are doing, and what they say of themselves."""
    registry = CollectorRegistry()
    registry.register(counted)
    registry.register(EngineCollector(lambda: gateway.status.engines(), gateway.memory))
    Info("loop_build", "Which gateway this is", registry=registry).info(
        {"version": build.version(), "python": build.python()})
    ProcessCollector(registry=registry)
    return MetricsPage(registry, gateway.own_metrics.texts)


def _policy(loop: LoopSettings) -> Policy:
    queue = QueueRules(loop.queue.size, loop.queue.max_wait)
    return Policy(queue, loop.keep_alive, loop.memory_budget, loop.min_residency)


def _entry(engine: EngineSettings, loop: LoopSettings) -> Entry:
    made_of = replace(
        engine, models=(), preload=False,
        connect_timeout=engine.connect_timeout or loop.connect_timeout,
        read_timeout=engine.read_timeout or loop.read_timeout)
    return Entry(Served(engine.models), made_of, engine.preload)
