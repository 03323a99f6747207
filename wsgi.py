"""The WSGI entry point: ``LOOP_CONFIG=FILE gunicorn -c etc/gunicorn.conf.py wsgi:application``."""

import sys

from app.config import ConfigError, load
from app.factory import create_app
from app.telemetry import log
from app.telemetry.access_log import AccessLog

try:
    settings = load()
except ConfigError as error:
    sys.exit(str(error))
log.configure(settings.server.log_format)
application = create_app(settings, access_log=AccessLog(settings.server.log_format))
application.extensions["loop"].gateway.start()
