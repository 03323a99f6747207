"""The sizes of a model that decide how much memory it needs to run.

Source: llama.cpp, src/llama-hparams.cpp, llama-kv-cache.cpp and llama-memory-recurrent.cpp; what
files need not say is that of src/models/*.cpp. Keys and values are f16, states f32.
"""

from dataclasses import dataclass

from app.catalog.file_facts import Facts

MAX_LAYERS = 512  # llama.cpp loads no model that has more
_MOST = 2**24  # heads, or numbers in a vector; far more than any model has
_KEPT = 2  # bytes of a number in keys and values
_STATE = 4  # bytes of a number in a recurrent state
# Every n-th layer sees all tokens, the others a window of them. Where another architecture has a
# window, llama.cpp may ignore it, so all tokens are counted unless the file has a pattern.
_PERIODS = {
    "afmoe": 4, "cohere2": 4, "cohere2moe": 4, "exaone-moe": 4, "exaone4": 4, "gemma2": 2,
    "gemma3": 6, "gemma3n": 5, "gemma-embedding": 6, "gpt-oss": 2, "olmo2": 4, "plamo3": 8,
    "smallthinker": 4,
}
_ALL_SEEN = ("phi3",)  # its windows are ignored, whatever its files say
_INTERVALS = {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4}  # every n-th layer has attention
_KEEPING = {"gemma3n": 20}  # the first layers, whose keys and values the others use


@dataclass(frozen=True)
class Layer:
    """Bytes that one layer keeps of each token, and of each slot however many tokens it has.

    With a `window` it keeps only so many of the last tokens; 0 means all.
    """

    token: int
    window: int = 0
    state: int = 0


@dataclass(frozen=True)
class Shape:
    """The layers, and how many numbers a token is between them and within one.

    ``generates`` tells those that say what comes next from those that read texts as a whole.
    """

    layers: tuple[Layer, ...]
    width: int
    inner: int
    vocabulary: int
    generates: bool


class _Unusable(Exception):
    """The file does not say enough, or says what cannot be."""


def shape(file: Facts) -> Shape | None:
    """The shape of the model; None where its file does not tell, or tells what cannot be."""
    try:
        count = _number(file, "block_count", MAX_LAYERS)
        return Shape(_layers(file, count), _number(file, "embedding_length"),
                     _inner(file, count), _vocabulary(file), _generates(file))
    except _Unusable:
        return None


def _layers(file: Facts, count: int) -> tuple[Layer, ...]:
    windows = _windows(file, count)
    recurrent = _recurrent(file, count)
    tokens = [0 if recurrent[i] else token for i, token in enumerate(_tokens(file, windows))]
    state = _state(file)
    if not count or not any(tokens) and not state and _generates(file):
        raise _Unusable
    beside = all(tokens)  # a state in every layer, beside the attention
    return tuple(Layer(tokens[i], windows[i], state if beside or not tokens[i] else 0)
                 for i in range(count))


def _generates(file: Facts) -> bool:
    return file.own("attention.causal") is not False


def _tokens(file: Facts, windows: list[int]) -> list[int]:
    """Bytes of a token in each layer, if it has attention."""
    count = len(windows)
    queries = _each(file, "attention.head_count", count)
    heads = _each(file, "attention.head_count_kv", count) or queries
    keeping = min(_KEEPING.get(file.architecture, count),
                  count - _number(file, "attention.shared_kv_layers", count))
    if not heads or not _generates(file):
        return [0] * count
    longest = max(queries or heads)
    usual = _number(file, "embedding_length") // longest if longest else 0
    full, windowed = _lengths(file, usual), _lengths(file, usual, "_swa")
    return [heads[i] * (windowed if windows[i] else full) * _KEPT if i < keeping else 0
            for i in range(count)]


def _lengths(file: Facts, usual: int, suffix: str = "") -> int:
    """Numbers in the key and the value of one head together."""
    key, value = (
        _number(file, f"attention.{part}_length{suffix}")
        or _number(file, f"attention.{part}_length") or usual
        for part in ("key", "value"))
    compressed = _number(file, "attention.key_length_mla")  # then the value is a part of the key
    return key if compressed else key + value


def _windows(file: Facts, count: int) -> list[int]:
    """The window of each layer; 0 for one that sees all tokens."""
    window = _number(file, "attention.sliding_window", most=2**31)
    if not window or file.architecture in _ALL_SEEN:
        return [0] * count
    told = _array(file, "attention.sliding_window_pattern", count)
    if told:
        return [window if windowed else 0 for windowed in told]
    period = _number(file, "attention.sliding_window_pattern")
    period = period or _PERIODS.get(file.architecture, 1)
    return [window if (i + 1) % period else 0 for i in range(count)]


def _recurrent(file: Facts, count: int) -> list[int]:
    """Which layers, of a model that has both kinds, keep a state in place of tokens."""
    told = _array(file, "attention.recurrent_layers", count)
    interval = _number(file, "full_attention_interval") or _INTERVALS.get(file.architecture, 1)
    return told or [(i + 1) % interval for i in range(count)]


def _state(file: Facts) -> int:
    """Bytes of the state that a recurrent layer keeps for each slot."""
    width, head = _number(file, "embedding_length"), _number(file, "wkv.head_size")
    if head:
        return (2 * width + width * head) * _STATE
    inner, size = _number(file, "ssm.inner_size"), _number(file, "ssm.state_size")
    mixed = inner + 2 * _number(file, "ssm.group_count") * size
    convolved = max(_number(file, "ssm.conv_kernel") - 1, 0) * mixed
    short = max(_number(file, "shortconv.l_cache") - 1, 0) * width
    return (convolved + inner * size + short) * _STATE


def _inner(file: Facts, count: int) -> int:
    dense = max(_each(file, "feed_forward_length", count), default=0)
    chosen = _number(file, "expert_used_count") * _number(file, "expert_feed_forward_length")
    return max(dense, chosen, _number(file, "ssm.inner_size"))


def _vocabulary(file: Facts) -> int:
    tokens = file.arrays.get("tokenizer.ggml.tokens")
    return min(tokens.length, _MOST) if tokens else _number(file, "vocab_size")


def _number(file: Facts, key: str, most: int = _MOST) -> int:
    """The number of one of the architecture's keys; 0 where it has none."""
    found = file.number(f"{file.architecture}.{key}") or 0
    if not 0 <= found <= most:
        raise _Unusable
    return found


def _each(file: Facts, key: str, count: int) -> list[int]:
    """The numbers of a key for each layer; empty where there are none."""
    told = _array(file, key, count)
    one = _number(file, key)
    return told or ([one] * count if one else [])


def _array(file: Facts, key: str, count: int) -> list[int]:
    """The numbers of a key that has one for each layer; empty where it has not."""
    found = file.arrays.get(f"{file.architecture}.{key}")
    if found is None:
        return []
    possible = all(isinstance(each, int) and 0 <= each <= _MOST for each in found.elements)
    if len(found.elements) < count or not possible:
        raise _Unusable
    return [int(each) for each in found.elements[:count]]
