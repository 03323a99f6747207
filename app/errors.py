"""The one error the gateway raises: a kind and its facts, without any HTTP.

    GatewayError
      kind      what happened (Kind)
      message   a sentence for people
      param     the path of the field that is wrong, if one is
      model     the model name the caller asked for, if that is what is unknown
      wait      seconds after which another try makes sense, where that is known

The table that gives each kind a status and a body per API is ``app.api.errors``.
"""

from enum import Enum, auto


class Kind(Enum):
    """What went wrong, as the one who has to act on it would put it."""

    INVALID_BODY = auto()        # the caller sent something that is no JSON object
    INVALID_FIELD = auto()       # the caller sent a wrong value
    BODY_TOO_LARGE = auto()      # the body is over server.max-body
    BODY_TOO_SLOW = auto()       # the body was not whole within server.body-timeout
    UNSUPPORTED_CODING = auto()  # the body is packed in a way that is not known
    UNAUTHORIZED = auto()        # no key, one that is not known, or several
    MODEL_NOT_ALLOWED = auto()   # the key is not for this model
    SCOPE_MISSING = auto()       # the key is not for this kind of request
    HOST_NOT_ALLOWED = auto()    # asked under a name that is not the gateway's
    ORIGIN_NOT_ALLOWED = auto()  # asked by a web page from elsewhere
    RATE_LIMITED = auto()        # the key has had its requests, or has its calls running
    UNKNOWN_MODEL = auto()       # no engine serves it, or the registry does not hold it
    UNKNOWN_URL = auto()
    METHOD_NOT_ALLOWED = auto()
    NO_MODEL_LOADED = auto()     # default-model is "loaded" and nothing is
    ENGINE_UNAVAILABLE = auto()  # refused, or its name does not resolve: it saw nothing
    ENGINE_TIMEOUT = auto()      # silent for longer than its limit
    ENGINE_NOT_READY = auto()    # it did not start, does not fit, or was loading for too long
    QUEUE_FULL = auto()          # its queue is full, or the call waited in it for too long
    UPSTREAM_ERROR = auto()      # it answered 5xx, or something that is no whole answer
    BUSY = auto()                # every thread that may wait for an engine does
    STOPPING = auto()            # the gateway takes no more calls, as it is about to end
    CLIENT_GONE = auto()         # nobody is there to read what it would say
    INTERNAL = auto()            # a fault of the gateway itself


class GatewayError(Exception):
    """An error the gateway reports itself, as opposed to one an engine reported."""

    def __init__(
        self, kind: Kind, message: str, *, param: str | None = None, model: str | None = None,
        wait: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.model = model
        self.wait = wait

    @classmethod
    def unknown_model(cls, name: str) -> "GatewayError":
        """The error for a model name that leads nowhere."""
        return cls(
            Kind.UNKNOWN_MODEL, f"the model '{name}' does not exist", param="model", model=name
        )
