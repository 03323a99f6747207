"""From an Ollama request to what the engine is asked. All of it is pure: fields in, an Ask out."""
