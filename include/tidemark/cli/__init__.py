"""The command line. Imports neither Arrow nor Spark until a command needs them."""

from tidemark.cli.main import app

__all__ = ["app"]
