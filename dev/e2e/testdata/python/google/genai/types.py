"""The options of a client."""

from types import SimpleNamespace

HttpOptions = SimpleNamespace
