"""A stand-in of the google-genai package: a generated answer."""

from types import SimpleNamespace

import wire

from . import types


class Client:
    def __init__(self, *, api_key, http_options):
        self.url = http_options.base_url.rstrip("/") + "/v1beta/models/"
        self.headers = {"x-goog-api-key": api_key, "User-Agent": "google-genai-sdk/1.52.0 gl-python/3.13"}
        self.models = SimpleNamespace(generate_content=self.generate)

    def generate(self, *, model, contents):
        body = {"contents": [{"parts": [{"text": contents}], "role": "user"}]}
        answer = wire.parsed(wire.post(f"{self.url}{model}:generateContent", self.headers, body).read())
        return SimpleNamespace(text="".join(part.text for part in answer.candidates[0].content.parts))
