"""From an engine's reply to the lines of an Ollama stream, event by event."""

from collections.abc import Iterable, Iterator

from app.api.ollama.answer import logprobs
from app.api.ollama.answer.answer import Answer
from app.api.ollama.answer.events import DONE, Event, document, streamed
from app.api.ollama.answer.failure import contained
from app.api.ollama.answer.metrics import Tally
from app.api.ollama.answer.parts import READERS, Part
from app.api.ollama.answer.portions import portions
from app.api.ollama.answer.repeats import Repeats
from app.api.ollama.answer.shapes import End, Line, Said, Shape, chat_line, generate_line
from app.api.ollama.answer.think import ThinkSplitter
from app.api.ollama.answer.tool_calls import ToolCalls
from app.api.ollama.refusal import Refusal
from app.errors import GatewayError, Kind


def chat_lines(pieces: Iterable[bytes], answer: Answer) -> Iterator[Line]:
    """The lines of /api/chat, each as soon as the event behind it is there.

    The last one has ``"done": true``, or is a FailureLine. What fails before the first line is
    raised by the first step: what the pieces raise, GatewayError, or Refusal. The end does not wait
    for the end of the reply, and comes early where a model repeats itself: whoever takes the lines
    closes the reply after them.
    """
    return contained(_told(pieces, answer, chat_line))


def generate_lines(pieces: Iterable[bytes], answer: Answer) -> Iterator[Line]:
    """The lines of /api/generate, as above."""
    return contained(_told(pieces, answer, generate_line))


def _told(pieces: Iterable[bytes], answer: Answer, shape: Shape) -> Iterator[Line]:
    telling = _Telling(answer, shape)
    try:
        for event in (streamed if answer.stream_type else document)(pieces):
            yield from telling.lines(event)
            if telling.over:
                break
    except (GatewayError, Refusal):
        if not telling.done_reason:  # once it is said, only metrics can be missing
            raise
    yield from telling.end()


class _Telling:
    """One answer in the course of being told."""

    def __init__(self, answer: Answer, shape: Shape) -> None:
        self._answer = answer
        self._shape = shape
        self._part = READERS[answer.style]
        self._tally = Tally(answer)
        self._calls = ToolCalls()
        self._splitter = ThinkSplitter(answer.think_opened) if answer.think_tags else None
        self._repeats = None if answer.style == "chat" else Repeats()
        self._text: list[str] = []
        self._tokens: list[int] = []
        self.done_reason = ""  # "" while nobody has said that the answer is whole
        self.over = False      # nothing else is worth waiting for

    def lines(self, event: Event) -> Iterator[Line]:
        """What the event adds."""
        if event is DONE:
            yield from self._finish("stop")
            self.over = True
            return
        part = self._part(event)
        self._tally.note(event)
        if self._repeats and part.content and self._repeats.exceeded_by(part.content):
            part = Part(done_reason="length")
            self.over = True
        if part.content or part.thinking or part.calls:
            self._tally.delta()
        if self._answer.context:
            self._remember(part, event)
        for said in self._said(part):
            yield self._line(said)
        if part.calls:
            yield from self._called(self._calls.take(part.calls))
        if part.done_reason:
            yield from self._finish(part.done_reason)

    def end(self) -> Iterator[Line]:
        """The last line; raises GatewayError where the answer is not whole."""
        if not self.done_reason:
            text = "the engine ended its answer before it was complete"
            raise GatewayError(Kind.UPSTREAM_ERROR, text)
        recall = self._answer.context
        context = recall("".join(self._text), self._tokens) if recall else []
        yield self._line(Said(), End(self.done_reason, self._tally.metrics(), context))

    def _finish(self, reason: str) -> Iterator[Line]:
        """What was held back. The first reason stays: a ``[DONE]`` behind it says nothing new."""
        if self._splitter:
            for said in portions(*self._splitter.rest(), []):
                yield self._line(said)
        yield from self._called(self._calls.rest())
        self.done_reason = self.done_reason or reason
        # llama-server's own API puts all it has to say into the event that stops.
        self.over = self.over or self._answer.style == "completion"

    def _said(self, part: Part) -> Iterator[Said]:
        content, thinking = part.content, part.thinking
        if self._splitter and content:
            content, thought = self._splitter.split(content)
            thinking += thought
        entries = part.logprobs and logprobs.listed(part.logprobs, self._answer.top_logprobs or 0)
        return portions(content, thinking, entries or [])

    def _called(self, calls: list[Line]) -> Iterator[Line]:
        """One line for each: clients look at the first call of a line only (Zed)."""
        for call in calls:
            yield self._line(Said(calls=[call]))

    def _remember(self, part: Part, event: Event) -> None:
        self._text.append(part.content)
        tokens = event.get("tokens")
        if isinstance(tokens, list):
            self._tokens += [token for token in tokens if isinstance(token, int)]

    def _line(self, said: Said, end: End | None = None) -> Line:
        head = {"model": self._answer.model, "created_at": self._answer.created_at()}
        return self._shape(head, said, end)
