"""Whether a GGUF file is whole: with metadata that can be read, and all that it announces."""

import os
from pathlib import Path

from app.catalog import gguf, gguf_tensors, quantization
from app.catalog.gguf_source import GgufError, Source
from app.catalog.problems import BadFile, shown


def require(path: Path, called: str = "") -> gguf.Metadata:
    """The metadata of the file; raises BadFile, naming it ``called``, unless it is whole.

    That its numbers are the right ones only a hash can tell.
    """
    name = shown(called or path)
    try:
        with gguf.open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            source = Source(file, size)
            found = gguf.read_source(source)
            alignment = found.values.get("general.alignment")
            announced = gguf_tensors.data_end(source, found.tensor_count, alignment)
    except GgufError as error:
        raise BadFile(f"'{name}' is no whole GGUF file: {error}") from error
    except OSError as error:
        raise BadFile(f"'{name}' cannot be read: {error.strerror or error}") from error
    if size < announced:
        raise BadFile(f"'{name}' is cut short: it has {size} bytes of {announced}")
    return found


def quantization_of(metadata: gguf.Metadata) -> str:
    """The quantisation that a file names, "" where it does not or it is not known."""
    number = metadata.values.get("general.file_type")
    name = quantization.of_file_type(number) if isinstance(number, int) else ""
    return "" if name == quantization.UNKNOWN else name
