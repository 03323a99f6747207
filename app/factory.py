"""Builds the application: the only place that wires things together."""

from datetime import datetime, timezone

from flask import Flask

from app.api import errors, native, ops, place, request_id, security, upstream
from app.api.ollama import routes as ollama
from app.api.openai import routes as openai
from app.api.security.browsers import Browsers
from app.api.security.quotas import Quotas
from app.api.security.rates import Concurrency, Rates
from app.api.services import Services
from app.catalog.facts import FactsCache
from app.catalog.registry import Registry
from app.engines.client import EngineClient
from app.engines.failures import Limits
from app.engines.loaded import Clock, LoadedModels
from app.engines.props import LIMITS, PropsCache, asking
from app.engines.router import Served
from app.gateway import Attached, Gateway, Names
from app.hosts import AllowedHosts
from app.keys import KeyRing
from app.origins import AllowedOrigins
from app.settings import EngineSettings, Settings


def utc_now() -> datetime:
    """The time with its zone."""
    return datetime.now(timezone.utc)


def create_app(settings: Settings, clock: Clock = utc_now) -> Flask:
    """The WSGI application for these settings. Starts nothing and reads no environment."""
    loop = settings.loop
    registry = Registry(loop.home)
    gateway = Gateway(
        engines=[_attached(engine, settings) for engine in loop.engines],
        names=Names(loop.aliases, loop.default_model),
        registry=registry,
        loaded=LoadedModels(loop.keep_alive, clock),
        places=settings.server.threads,
    )
    app = Flask("loop-gateway", static_folder=None)
    app.url_map.merge_slashes = False  # a model name may hold two slashes; redirects help nobody
    app.config["MAX_BODY"] = settings.server.max_body
    app.config["ALLOW_REMOTE_MEDIA"] = settings.server.allow_remote_media
    app.extensions["loop"] = Services(gateway, registry, FactsCache())
    app.register_blueprint(openai.blueprint(model_optional=loop.default_model is not None))
    app.register_blueprint(ollama.blueprint(settings.server.ollama_version))
    app.register_blueprint(native.blueprint())
    app.register_blueprint(upstream.blueprint())
    app.register_blueprint(ops.blueprint())
    security.register(app, _guard(settings, clock))
    request_id.register(app)
    place.register(app)
    errors.register(app)
    return app


def _guard(settings: Settings, clock: Clock) -> security.Guard:
    server = settings.server
    return security.Guard(
        Browsers(AllowedHosts(server.address, server.allowed_hosts),
                 AllowedOrigins(server.cors_origins)),
        KeyRing(settings.keys, matching=lambda globs: Served(globs).matches),
        Quotas(Rates(server.rate_storage), Concurrency()),
        clock,
    )


def _attached(engine: EngineSettings, settings: Settings) -> Attached:
    return Attached(Served(engine.models), _client(engine, settings), _props(engine))


def _client(engine: EngineSettings, settings: Settings) -> EngineClient:
    limits = Limits(
        connect=engine.connect_timeout or settings.loop.connect_timeout,
        read=engine.read_timeout or settings.loop.read_timeout,
    )
    return EngineClient(engine.url, engine.api_key, limits, connections=settings.server.threads)


def _props(engine: EngineSettings) -> PropsCache:
    client = EngineClient(engine.url, engine.api_key, LIMITS, connections=4)
    return PropsCache(asking(client), engine.kind)
