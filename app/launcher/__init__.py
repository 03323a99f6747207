"""What scripts/serve runs: the gateway, and a first model for its engines."""
