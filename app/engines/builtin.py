"""The built-in engine: one llama.cpp server in this process, by xllamacpp.

    python -m app.engines.builtin --model FILE --alias NAME --port N

It serves until SIGTERM or SIGINT, which end it with exit code 0 even while it generates, or until
the process that started it is gone. While the model loads nothing in this process can run, so a
signal then ends it as signals do (exit by that signal), just as fast. What keeps it from starting
is told in one sentence, the last line on standard error; the exit code is then 1.
"""

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from app.catalog import gguf
from app.catalog.file_facts import Facts
from app.engines.builtin_size import SLOT_CONTEXT, batch, embeds, slot_context
from app.engines.lifeline import Signals
from app.engines.ports import refusal
from app.engines.prctl import end_with_parent

_PROJECTOR = "clip"  # the architecture of every file that sees or hears for a model


class CannotStart(Exception):
    """The engine cannot serve; the message is one sentence with the remedy."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve as the command line says; blocks until told to end. Does not return after that."""
    parent = os.getppid()
    # A signal of its own: the kernel also sends it when only the parent's starting thread ends.
    end_with_parent(signal.SIGUSR1, parent)
    # Python's own handler would wait for the load to be over.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    arguments = _parser().parse_args(argv)
    try:
        server = _start(arguments)
    except CannotStart as problem:
        print(f"builtin engine: {problem}", file=sys.stderr)
        return 1
    signals = Signals(signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    print(f"{arguments.alias} is served at {server.listening_address}", flush=True)
    while os.getppid() == parent:
        if signals.wait(1.0) in (signal.SIGTERM, signal.SIGINT):
            break
    sys.stderr.flush()
    os._exit(0)  # the server's destructor would wait for what is being generated


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m app.engines.builtin", description=(
        "Serve one GGUF model with llama.cpp over HTTP: chat, completions and embeddings."))
    parser.add_argument("--model", type=Path, required=True, metavar="FILE", help="a .gguf file")
    parser.add_argument("--mmproj", type=_file_or_none, metavar="FILE",
                        help='the .gguf file that sees or hears for the model ("": none)')
    parser.add_argument("--alias", required=True, metavar="NAME", help="what its answers name it")
    parser.add_argument("--port", type=_port, required=True, metavar="N", help="0: any free one")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (127.0.0.1)")
    parser.add_argument("--parallel", type=_count, default=4, metavar="N",
                        help="calls answered at the same time, one slot each (4)")
    parser.add_argument("--ctx", type=_count, metavar="N",
                        help="tokens of context of all slots together (for each slot "
                             f"{SLOT_CONTEXT}, or what the model was trained for if less)")
    return parser


def _file_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def _count(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no whole number above 0")


def _port(text: str) -> int:
    if text.isdecimal() and int(text) < 65536:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is no port; ports are 0 to 65535")


def _start(arguments: argparse.Namespace) -> Any:
    """The running server; returns once it answers. Raises CannotStart."""
    library = _library()
    file = _metadata(arguments.model, "model", "--model")
    if arguments.mmproj:
        _require_projector(arguments.mmproj)
    _require_free(arguments.host, arguments.port)
    try:
        return library.Server(_parameters(library, arguments, file))
    except RuntimeError as error:  # the same error for every cause; llama.cpp has printed which
        _require_free(arguments.host, arguments.port)
        named = " with ".join(str(path) for path in (arguments.model, arguments.mmproj) if path)
        raise CannotStart(
            f"llama.cpp cannot load {named}; the lines above say why. If the file is "
            "damaged, pull it again; if memory is short, lower --ctx") from error


def _library() -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise CannotStart(f"it needs the package xllamacpp, which does not load ({error}); "
                          "install it with: pip install -e '.[engine]'") from error
    return xllamacpp


def _metadata(path: Path, what: str, option: str) -> Facts:
    try:
        found = gguf.read(path)
    except FileNotFoundError:
        raise CannotStart(f"there is no file {path}; name a .gguf file with {option}") from None
    except (gguf.GgufError, OSError) as error:
        raise CannotStart(f"{path} is no usable {what} ({error}); pull it again") from None
    if not found.complete:
        raise CannotStart(f"{path} is cut short; pull it again")
    return Facts(found.values)


def _require_projector(path: Path) -> None:
    """Raises CannotStart for what llama.cpp would refuse after it has loaded the model."""
    if _metadata(path, "projector", "--mmproj").architecture != _PROJECTOR:
        raise CannotStart(f"{path} is no projector; name one with --mmproj, or leave it out")


def _require_free(host: str, port: int) -> None:
    """Raises CannotStart when nothing can listen there."""
    error = refusal(host, port)
    if error and error.errno == errno.EADDRINUSE:
        raise CannotStart(f"port {port} on {host} is in use; choose another with --port")
    if error:
        raise CannotStart(f"it cannot listen on {host}, port {port} ({error.strerror}); "
                          "choose others with --host and --port")


def _parameters(library: Any, arguments: argparse.Namespace, file: Facts) -> Any:
    """llama.cpp's parameters for one server that answers chat and /v1/embeddings."""
    parameters = library.CommonParams()
    parameters.model.path = str(arguments.model)
    if arguments.mmproj:
        parameters.mmproj.path = str(arguments.mmproj)
    parameters.model_alias = {arguments.alias}  # a set: llama.cpp lets a model have several
    parameters.hostnames = [arguments.host]
    parameters.port = arguments.port
    parameters.n_parallel = arguments.parallel
    parameters.n_ctx = arguments.ctx or arguments.parallel * slot_context(file)
    parameters.use_jinja = True
    parameters.endpoint_metrics = True
    parameters.endpoint_slots = True
    parameters.ui = False
    parameters.cors_origins = ""  # web pages go through the gateway, which knows whom to let in
    parameters.embedding = True
    if not embeds(file):
        # The only pooling that can take a long text piece by piece.
        parameters.pooling_type = library.llama_pooling_type.LLAMA_POOLING_TYPE_LAST
    slot = parameters.n_ctx // parameters.n_parallel
    parameters.n_batch = parameters.n_ubatch = batch(file, slot, arguments.mmproj is not None)
    _bound_memory(library, parameters)
    return parameters


def _bound_memory(library: Any, parameters: Any) -> None:
    """No more than what ``app.catalog.footprint`` foretells."""
    # Mapped files count twice where llama.cpp rearranges the weights (Q4_0, Q4_K), and end the
    # process when somebody cuts them short.
    parameters.load_mode = library.llama_load_mode.LLAMA_LOAD_MODE_NONE
    parameters.cache_ram_mib = 0  # for prompts that no slot holds any more: 8 GiB otherwise
    parameters.cache_idle_slots = False  # they would go there
    # Copies of windows and recurrent states to go back to: 32 for each slot otherwise.
    parameters.n_ctx_checkpoints = 1


if __name__ == "__main__":
    sys.exit(main())
