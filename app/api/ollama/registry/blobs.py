"""HEAD and POST /api/blobs/<digest>: files that are uploaded to make a model of."""

import re

from flask import Response, request

from app.api.http import services
from app.api.ollama.refusal import Refusal, invalid, of_catalog
from app.api.ollama.registry.changing import client
from app.api.place import take_aside
from app.api.upload import Upload
from app.catalog.problems import BadName, CatalogError, WrongContent, of_disk
from app.catalog.store import disk
from app.catalog.store.blobs import hex_of, present, put_blob

_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_WAYS = ("", "identity")


def blob(digest: str) -> Response:
    """Whether the blob is there, or with POST the upload of it."""
    sha256 = _sha256(digest)
    home = services().registry.home
    there = present(home, sha256) is not None
    if request.method == "HEAD" and not there:
        raise Refusal(404, f'blob "sha256:{sha256}" not found')
    if there:
        return _empty(200)
    _receive(sha256)
    return _empty(201)


def _receive(sha256: str) -> None:
    """Make a blob of the request's body. Blocks until it is there; raises Refusal, GatewayError.

    It waits for another upload of the same, unless the client leaves. Nothing is left of one that
    is cut or is another's.
    """
    if request.headers.get("Content-Encoding", "").strip().lower() not in _WAYS:
        raise Refusal(415, "a blob is sent as it is, without a Content-Encoding")
    take_aside()
    upload, home = Upload(), services().registry.home
    try:
        with of_disk(home), services().gateway.watch(client()) as departure:
            (home / "blobs").mkdir(parents=True, exist_ok=True)
            disk.require_space(home / "blobs", upload.announced, "the blob")
            put_blob(home, upload, sha256, departure.check)
    except WrongContent as error:
        expected_and_got = _DIGEST.sub(lambda found: f'"{found[0]}"', str(error))
        raise invalid(f"digest mismatch, {expected_and_got}") from error
    except CatalogError as error:
        raise of_catalog(error) from error


def _sha256(digest: str) -> str:
    try:
        return hex_of(digest)
    except BadName as error:
        raise invalid("invalid digest format") from error


def _empty(status: int) -> Response:
    return Response(status=status, content_type="text/plain")
