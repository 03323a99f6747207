"""What an engine says of itself: decides how it is spoken to and what is said of its models."""

from dataclasses import dataclass

LLAMA_SERVER = "llama-server"


@dataclass(frozen=True)
class EngineFacts:
    """One engine, as llama-server's GET /props shows it (llama.cpp, tools/server/README.md).

    ``kind`` is ``llama-server`` or ``openai``: of an engine that has no /props nothing is known
    but that it speaks the OpenAI API. What is unknown is 0, "", None or False.
    """

    kind: str
    slot_context: int = 0  # tokens that one call may use, prompt and answer together
    slots: int = 0  # calls it answers at the same time
    chat_template: str = ""  # as the engine applies it
    supports_tools: bool | None = None  # whether that template takes tools
    vision: bool = False
    audio: bool = False
    bos_token: str = ""  # the text of the token that may begin a prompt
    media_marker: str = ""  # stands for an image or a sound in the prompt of /completion
    model_path: str = ""  # on the engine's machine
    sleeping: bool = False  # it has no model in memory until somebody asks it to work
    ftype: str = ""  # the quantisation in llama.cpp's words

    @property
    def is_llama_server(self) -> bool:
        """Whether it has the endpoints and the sampling fields of llama-server."""
        return self.kind == LLAMA_SERVER

    @property
    def described(self) -> bool:
        """Whether the engine itself has said so, and has the model loaded; else only its kind."""
        return self.slot_context > 0


OPENAI = EngineFacts(kind="openai")
