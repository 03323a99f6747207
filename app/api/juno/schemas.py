"""Views of the bodies of /v1/inference."""

from app.api.extensions import Name, PriorityName
from app.api.messages import Messages
from app.api.view import Flag, Number, Part, Positive, Text, View, Whole


class SamplingView(View):
    """What is checked of ``sampling``."""

    temperature = Number(0.0, 2.0, allow_none=True)
    topK = Whole(allow_none=True)
    topP = Number(0.0, 1.0, allow_none=True)
    repetitionPenalty = Number(1.0, allow_none=True)
    greedy = Flag(allow_none=True)
    maxTokens = Positive(allow_none=True)
    priority = PriorityName(allow_none=True)


class InferenceView(View):
    """What is checked where there is a default model."""

    requestId = Name(allow_none=True)
    modelId = Text(allow_none=True)
    messages = Messages(required=True)
    sampling = Part(SamplingView(), allow_none=True)


class NamedInferenceView(InferenceView):
    """What is checked where there is none."""

    modelId = Text(required=True)
