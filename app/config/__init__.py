"""YAML and environment → settings; all problems at once."""

from app.config.change import effective
from app.config.load import files, load
from app.config.problems import ConfigError, Problem
from app.config.rules import inert

__all__ = ["ConfigError", "Problem", "effective", "files", "inert", "load"]
