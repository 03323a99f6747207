"""The WSGI entry point: ``LOOP_CONFIG=FILE gunicorn -c etc/gunicorn.conf.py wsgi:application``."""

import os
import sys

from app.config import ConfigError
from app.server.application import Application
from app.telemetry import log

try:
    application = Application(os.environ)
except ConfigError as error:
    sys.exit(str(error))
log.configure(application.settings.server.log_format)
application.start()
