"""YAML and environment → settings; all problems at once."""

from app.config.load import load
from app.config.problems import ConfigError, Problem
from app.config.rules import inert

__all__ = ["ConfigError", "Problem", "inert", "load"]
