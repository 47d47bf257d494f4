"""A stand-in of the anthropic package: the stream of a message."""

from contextlib import contextmanager
from types import SimpleNamespace

import wire


class Anthropic:
    def __init__(self, *, base_url, api_key):
        self.url = base_url.rstrip("/")
        self.headers = {
            "X-Api-Key": api_key,
            "anthropic-version": "2023-06-01",
            "User-Agent": "Anthropic/Python 0.75.0",
            "X-Stainless-Lang": "python",
            "X-Stainless-Stream-Helper": "messages",
        }
        self.messages = SimpleNamespace(stream=self.stream)

    @contextmanager
    def stream(self, **body):
        answer = wire.post(self.url + "/v1/messages", self.headers, body | {"stream": True})
        yield SimpleNamespace(text_stream=texts(wire.events(answer)))


def texts(events):
    for event in events:
        if event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text
