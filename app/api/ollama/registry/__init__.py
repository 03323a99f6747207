"""What Ollama's clients do to the models of the registry: bring, make, copy and remove them."""
