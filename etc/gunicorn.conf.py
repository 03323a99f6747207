"""gunicorn's settings, from the gateway's: LOOP_CONFIG=FILE gunicorn -c etc/gunicorn.conf.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from app.config import ConfigError, inert, load  # noqa: E402
from app.server import checks, master  # noqa: E402
from app.server.logs import logger_class as _logger_class  # noqa: E402
from app.server.worker import worker_class as _worker_class  # noqa: E402

try:
    _settings = load()
except ConfigError as _error:
    sys.exit(str(_error))

wsgi_app = "wsgi:application"
bind = checks.bind(_settings.server)
workers = 1
threads = _settings.server.threads + checks.RESERVE
worker_class = _worker_class(_settings.server)
worker_connections = max(4096, 4 * threads)  # silent connections cost no thread, only a descriptor
# A heartbeat file on a disk that is busy with a model can make the worker look dead.
worker_tmp_dir = "/dev/shm" if os.path.isdir("/dev/shm") else None
graceful_timeout = master.longest_end(_settings)
control_socket_disable = True  # it would lie open under the user's home
keepalive = 75
limit_request_line = 8190
limit_request_field_size = 131072  # so that a key of any length is judged as one
# No header of a proxy changes what a request is taken for, so none needs a look at who sent it.
forwarded_allow_ips = "*"
secure_scheme_headers = {}
forwarder_headers = ""
accesslog = None  # the application has a better one
logger_class = _logger_class(_settings.server)
proc_name = "loop-gateway"


def on_starting(server):
    """Refuse to run in a way that the gateway cannot, and say what has no effect."""
    checks.refuse_unsupported(server.cfg)
    master.take_signals(server)
    for key in inert(_settings):
        server.log.warning("%s is set, but nothing acts on it", key)


def nworkers_changed(server, new_value, old_value):
    """A second worker that a signal asks for is refused like one asked for at start."""
    if new_value > 1:
        server.log.error(checks.ONE_WORKER)
        server.num_workers = 1


def on_exit(server):
    """Nothing more can be asked of a master that ends."""
    master.forget_signals()


def worker_exit(server, worker):
    """End the engines with their gateway; where a worker is killed their guards do it."""
    if worker.application is not None:  # none where it could not be loaded
        worker.application.close(hastily=worker.hasty)
