"""What a request to make a model adds to the files, checked. Pure."""

from collections.abc import Collection, Mapping
from typing import Any

from app.api.ollama.refusal import Refusal, invalid, quoted
from app.api.ollama.request import images, options, template
from app.api.ollama.request.fields import items, lowered, mapping, objects, text
from app.engine_facts import LLAMA_SERVER, EngineFacts

Fields = dict[str, Any]

_EVERY_OPTION = EngineFacts(LLAMA_SERVER)
_ROLES = ("system", "user", "assistant")
_UNSUPPORTED = {
    "quantize": "models are not quantized here: take files that are",
    "quantization": "models are not quantized here: take files that are",
    "adapters": "adapters are not supported: merge them into the model's files",
    "draft_files": "draft models are not supported",
    "remote_host": "models of other hosts are not supported: configure an engine",
}


def require_supported(fields: Fields) -> None:
    """Raise Refusal where the files would have to be changed, or are no GGUF."""
    for name, reason in _UNSUPPORTED.items():
        if fields.get(name):
            raise invalid(f"{name}: {reason}")


def of(fields: Fields, own: Collection[str] = ()) -> Fields:
    """What the manifest gets under ``modelfile``, only what there is. Raises Refusal.

    ``own`` are the templates that clients are shown of the base's file: they add nothing.
    """
    source = text(fields.get("template"), "template")
    found = {
        "system": text(fields.get("system"), "system"),
        "template": "" if source.strip() in {each.strip() for each in own} else _template(source),
        "parameters": _parameters(fields.get("parameters")),
        "messages": [_message(m, f"messages[{i}]") for i, m in enumerate(
            objects(fields.get("messages"), "messages"))],
        "license": _licences(fields.get("license")),
    }
    return {key: value for key, value in found.items() if value}


def files_of(value: Any) -> dict[str, str]:
    """The digest of each file. Raises Refusal."""
    files = mapping(value, "files")
    for path, digest in files.items():
        if path.lower().endswith((".safetensors", ".bin", ".pt")):
            raise invalid(f"files: {quoted(path)} is not converted here: upload a GGUF file")
        if not isinstance(digest, str):
            raise invalid("invalid digest format")
    return files


def _template(source: str) -> str:
    """It must be one that prompts can be made with; raises Refusal."""
    try:
        template.render(source, {}, whole=True)
    except Refusal as refusal:
        raise invalid(f"{refusal.text} (leave the template out to use that of the file)"
                      ) from refusal
    return source


def _parameters(value: Any) -> dict[str, Any]:
    found = {name: given for name, given in mapping(value, "parameters").items()
             if given is not None}
    options.engine_fields(found, _EVERY_OPTION)
    return found


def _message(message: Mapping[str, Any], path: str) -> Fields:
    plain = lowered(dict(message))
    role = text(plain.get("role"), f"{path}.role").strip().lower()
    if role not in _ROLES:
        raise invalid(f"{path}.role must be one of {', '.join(_ROLES)}")
    made: Fields = {"role": role, "content": text(plain.get("content"), f"{path}.content")}
    pictures = items(plain.get("images"), f"{path}.images")
    for picture in pictures:
        images.read(picture)
    return {**made, "images": pictures} if pictures else made


def _licences(value: Any) -> list[str]:
    found = [value] if isinstance(value, str) else items(value, "license")
    return [each for i, each in enumerate(found) if text(each, f"license[{i}]")]
