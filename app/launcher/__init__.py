"""What scripts/serve runs: the gateway, an engine behind it, and a first model."""
