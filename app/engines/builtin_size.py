"""How much the built-in engine takes on at a time, by what the model's file says.

Pure, so that what it will need can be told before it is started.
"""

from app.catalog.file_facts import Facts

SLOT_CONTEXT = 4096  # tokens; enough for a chat, and four such slots of a small model stay small
_BATCH = 256  # tokens
_SEEING_BATCH = 512  # tokens; a picture that is seen at once is 256 or 280, of gemma3 or gemma4
_LARGEST_TEXT = 2048  # tokens; what is embedded by models that must see the whole text at once
_LAST = 3  # llama.h, llama_pooling_type: the vector of a text is that of its last token


def slot_context(file: Facts) -> int:
    """Tokens of one slot, where nobody says otherwise."""
    return min(SLOT_CONTEXT, file.context_length or SLOT_CONTEXT)


def embeds(file: Facts) -> bool:
    """Whether it was made for embedding, and says itself how."""
    return file.own("pooling_type") is not None


def batch(file: Facts, slot: int, sees: bool) -> int:
    """Tokens computed at once, of a model with so many tokens in a slot and maybe a projector.

    Embedding keeps the logits of all of them, twice: with 2,048 tokens and a vocabulary of
    262,144 that is 4.3 GB. On a CPU fewer are as fast.
    """
    usual = _SEEING_BATCH if sees else _BATCH
    whole = embeds(file) and file.own("pooling_type") != _LAST
    return max(usual, min(_LARGEST_TEXT, slot)) if whole else usual
