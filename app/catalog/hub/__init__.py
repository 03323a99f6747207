"""Models from the Hugging Face hub: their names, their files, and the way into the registry."""
