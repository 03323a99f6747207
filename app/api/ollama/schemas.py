"""Views of Ollama bodies."""

from app.api.view import Flag, Text, View


class ShowView(View):
    """What is checked of POST /api/show; ``name`` is the older word for ``model``."""

    model = Text(may_be_blank=True, allow_none=True)
    name = Text(may_be_blank=True, allow_none=True)
    verbose = Flag(allow_none=True)
