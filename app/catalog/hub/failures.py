"""Every exception of huggingface_hub and the HTTP library below it, made one of ours once."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.catalog.problems import (
    CatalogError, HubRefused, HubUnavailable, NotFound, WrongContent,
)

_PASSING = (408, 425, 429, 500, 502, 503, 504)
_AGAIN = "start it again, and it goes on from there"


@contextmanager
def mapped(endpoint: str, repo: str, revision: str) -> Iterator[None]:
    """Raise one of ours for what the libraries raise inside.

    NotFound, HubRefused, HubUnavailable, or WrongContent for a range that is beyond the file.
    """
    import httpx2
    from huggingface_hub import errors

    try:
        yield
    except errors.HfHubHTTPError as error:
        raise _of_answer(error, endpoint, repo, revision) from error
    except errors.OfflineModeIsEnabled as error:
        raise HubUnavailable("HF_HUB_OFFLINE is set, so nothing is asked of the hub") from error
    except httpx2.TimeoutException as error:
        raise HubUnavailable(f"{endpoint} does not answer in time: {_AGAIN}", True) from error
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol) as error:
        raise HubUnavailable(f"{endpoint} is no address: check HF_ENDPOINT") from error
    except httpx2.TransportError as error:
        raise HubUnavailable(
            f"the connection to {endpoint} failed ({error or type(error).__name__}): check the "
            f"network, HF_ENDPOINT and the proxy settings; {_AGAIN}", True) from error
    except httpx2.HTTPError as error:
        raise HubUnavailable(f"{endpoint} does not answer as a hub does: {error}") from error


@contextmanager
def of_content(endpoint: str) -> Iterator[None]:
    """Raise HubUnavailable where an answer is not what the library reads."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise HubUnavailable(f"{endpoint} does not answer as a hub does: check HF_ENDPOINT and "
                             "the proxy settings") from error


def _of_answer(error: Exception, endpoint: str, repo: str, revision: str) -> CatalogError:
    from huggingface_hub import errors

    response = getattr(error, "response", None)
    status = getattr(response, "status_code", 0)
    if isinstance(error, errors.GatedRepoError):
        return HubRefused(f"{repo} is given only to those who accepted its conditions: accept "
                          f"them at {endpoint}/{repo}, and set HF_TOKEN to a token of that account")
    if isinstance(error, errors.RepositoryNotFoundError):
        return NotFound(f"there is no repository {repo} on {endpoint}, or it is private: check "
                        "the name, or set HF_TOKEN to a token that may read it")
    if isinstance(error, errors.RevisionNotFoundError):
        return NotFound(f"{repo} has no revision {revision}")
    if isinstance(error, errors.EntryNotFoundError) or status == 404:
        return NotFound(f"{endpoint} has not what {repo} lists: {_AGAIN}")
    if status in (401, 403):
        return HubRefused(f"{endpoint} refuses {repo}: set HF_TOKEN to a token that may read it")
    if status == 416:
        return WrongContent(f"{endpoint} has less of a file than {repo} lists: start again later")
    if status in _PASSING:
        wait = _retry_after(getattr(response, "headers", {}).get("Retry-After", ""))
        later = f"in {wait:.0f} s" if wait else "later"
        return HubUnavailable(f"{endpoint} answers {status}: try again {later}", True, wait)
    return HubUnavailable(f"{endpoint} answers {status}: check HF_ENDPOINT")


def _retry_after(value: str) -> float | None:
    return float(value) if value.isascii() and value.isdigit() else None
