"""All lines of an answer as one object, for ``"stream": false``."""

from collections.abc import Iterable

from app.api.ollama.answer.failure import FailureLine
from app.api.ollama.answer.metrics import NAMES
from app.api.ollama.answer.shapes import End, Line, Said, chat_line, generate_line


def whole(lines: Iterable[Line]) -> Line:
    """What the lines say together, with the metrics of the last; blocks until it has come.

    Raises what the first step of the lines raises, and the cause of a FailureLine among them.
    """
    content, thinking = list[str](), list[str]()
    calls, logprobs = list[Line](), list[Line]()
    line: Line = {}
    for line in lines:
        if isinstance(line, FailureLine):
            raise line.cause
        said = line.get("message", line)
        content.append(said["content"] if "message" in line else line["response"])
        thinking.append(said.get("thinking", ""))
        calls += said.get("tool_calls", [])
        logprobs += line.get("logprobs", [])
    head = {"model": line["model"], "created_at": line["created_at"]}
    metrics = {name: line[name] for name in NAMES}
    end = End(line["done_reason"], metrics, line.get("context", []))
    shape = chat_line if "message" in line else generate_line
    return shape(head, Said("".join(content), "".join(thinking), calls, logprobs), end)
