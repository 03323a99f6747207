"""What is settled of an OpenAI body before an engine gets it."""

from app.api.payload import JsonBody


def one_limit(body: JsonBody) -> JsonBody:
    """The body with ``max_tokens`` set to ``max_completion_tokens`` where it has both.

    Engines know one name or the other, and would answer to the same body at different lengths.
    """
    limit = body.fields.get("max_completion_tokens")
    if limit is None or body.fields.get("max_tokens") in (None, limit):
        return body
    return body.with_field("max_tokens", limit)
