"""Views of OpenAI bodies: only fields whose wrong values are caught before an engine sees them."""

from app.api.messages import Messages
from app.api.view import AnyView, Flag, Number, Positive, Text, View


class ChatView(View):
    """What is checked of POST /v1/chat/completions where there is a default model."""

    model = Text(allow_none=True)
    messages = Messages(required=True)
    temperature = Number(0.0, 2.0, allow_none=True)
    max_tokens = Positive(allow_none=True)
    max_completion_tokens = Positive(allow_none=True)
    stream = Flag(allow_none=True)


class NamedChatView(ChatView):
    """What is checked of it where there is none."""

    model = Text(required=True)


class CompletionView(AnyView):
    """What is checked of POST /v1/completions: 0 is a good ``max_tokens`` there, an echo alone."""

    max_completion_tokens = Positive(allow_none=True)
