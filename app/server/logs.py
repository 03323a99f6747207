"""gunicorn's own log lines in the form of the gateway's."""

from typing import Any

from gunicorn.glogging import Logger

from app.settings import ServerSettings
from app.telemetry import log


def logger_class(settings: ServerSettings) -> type[Logger]:
    """The class of gunicorn's logger that writes in ``settings.log_format``."""
    return type("GatewayLogger", (_GatewayLogger,), {"form": settings.log_format})


class _GatewayLogger(Logger):
    form: str

    def setup(self, cfg: Any) -> None:
        """As gunicorn's; its own handlers get the gateway's form, those of a --log-config keep
        theirs."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            if getattr(handler, "_gunicorn", False):
                handler.setFormatter(log.formatter(self.form))
