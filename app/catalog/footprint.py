"""How much memory an engine needs for a model, estimated before it is started. Pure.

Of llama.cpp with the whole model in main memory. The process and the work space are measured:
with models of 45 to 600 MB the estimates are 3 to 25 % above the most that the built-in engine had
in memory, after long prompts in all slots and a long text to embed. A projector is a guess.
"""

from app.catalog.model_facts import ModelFacts, parts_of, projector_of
from app.catalog.model_shape import Layer, Shape, shape

BATCH = 512  # tokens that llama-server computes at once, unless it is told otherwise
_PROCESS = 72 * 1024 * 1024  # bytes: the program, and what it has for each slot and connection
_NAME = 320  # bytes of a word of the vocabulary, with all the ways to find it
_NUMBER = 4  # bytes of a number that is computed with
_CELLS = 256  # a cache has room for a multiple of so many tokens


def estimate(
    model: ModelFacts, context: int, slots: int, batch: int = BATCH, embeds: bool = False
) -> int:
    """Bytes that an engine needs for `slots` calls with `context` tokens in all.

    It computes `batch` tokens at once; with `embeds` it also makes vectors of texts. A projector,
    and a model whose file says too little, count as half as much again as their files.
    """
    entry = model.entry
    weights = sum(part.size for part in parts_of(entry) or [entry.first])
    beside = projector_of(entry) if model.projector else None
    files = weights + (beside.size * 3 // 2 if beside else 0)
    found = shape(model.file)
    if found is None:
        return _PROCESS + files + weights // 2
    slots = max(slots, 1)
    slot = _padded(-(-context // slots))
    kept = sum(_kept(layer, slot, batch) for layer in found.layers)
    outputs = batch if embeds else slots
    return _PROCESS + files + slots * kept + _work(found, slot, batch, outputs)


def _kept(layer: Layer, slot: int, batch: int) -> int:
    """Bytes that a layer keeps for a slot of so many tokens, with one copy to go back to."""
    if not layer.window:
        return layer.token * slot + 2 * layer.state
    cells = _padded(min(slot, layer.window + batch))
    return layer.token * (cells + min(slot, layer.window)) + 2 * layer.state


def _work(found: Shape, slot: int, batch: int, outputs: int) -> int:
    """Bytes to compute a batch: what is between the layers and in them, the mask, the logits."""
    inside = batch * (4 * found.width + 2 * found.inner) * _NUMBER
    mask = batch * slot * _NUMBER
    logits = outputs * found.vocabulary * _NUMBER  # room for them, whether or not they are made
    made = logits if found.generates else 0
    return inside + mask + logits + made + found.vocabulary * _NAME


def _padded(tokens: int) -> int:
    return -(-tokens // _CELLS) * _CELLS
