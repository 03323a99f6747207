"""The WSGI entry point: ``LOOP_CONFIG=FILE gunicorn -c etc/gunicorn.conf.py wsgi:application``."""

import sys

from app.config import ConfigError, load
from app.factory import create_app
from app.telemetry import log

log.configure()
try:
    application = create_app(load())
except ConfigError as error:
    sys.exit(str(error))
application.extensions["loop"].gateway.start()
