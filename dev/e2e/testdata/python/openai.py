"""A stand-in of the openai package. Its requests are those of version 2: paths and headers of its client, bodies of its arguments."""

import base64
import struct
import time
from contextlib import contextmanager
from types import SimpleNamespace

import wire


class NotFoundError(Exception):
    def __init__(self, answer):
        super().__init__(answer.reason)
        error = wire.parsed(answer.read())["error"]
        self.code, self.request_id = error["code"], answer.headers["x-request-id"]
        if not self.code or not self.request_id:
            raise ValueError(f"the error has code {self.code} and request id {self.request_id}")


class File:
    def __init__(self, answer):
        self.answer = answer

    def stream_to_file(self, name):
        with open(name, "wb") as file:
            if file.write(self.answer.read()) == 0:
                raise ValueError("the file is empty")

    write_to_file = stream_to_file


class OpenAI:
    def __init__(self, *, base_url, api_key):
        self.url = base_url.rstrip("/")
        self.headers = {"Authorization": "Bearer " + api_key, "User-Agent": "OpenAI/Python 2.8.0", "X-Stainless-Lang": "python"}
        self.chat = SimpleNamespace(completions=SimpleNamespace(create=self.completion))
        self.embeddings = SimpleNamespace(create=self.embedding)
        self.images = SimpleNamespace(generate=lambda **body: self.answer("/images/generations", body))
        self.audio = SimpleNamespace(
            speech=SimpleNamespace(with_streaming_response=SimpleNamespace(create=self.speech)),
            transcriptions=SimpleNamespace(create=self.transcription),
        )
        self.videos = SimpleNamespace(create_and_poll=self.video, download_content=self.content)

    def post(self, path, body):
        try:
            return wire.post(self.url + path, self.headers, body)
        except wire.HTTPError as error:
            if error.code == 404:
                raise NotFoundError(error) from None
            raise

    def answer(self, path, body):
        return wire.parsed(self.post(path, body).read())

    def completion(self, **body):
        if body.get("stream"):
            return wire.events(self.post("/chat/completions", body))
        return self.answer("/chat/completions", body)

    def embedding(self, **body):  # asked for in base64, which the SDK unpacks
        answer = self.answer("/embeddings", body | {"encoding_format": "base64"})
        for item in answer.data:
            packed = base64.b64decode(item.embedding)
            item["embedding"] = struct.unpack(f"<{len(packed) // 4}f", packed)
        return answer

    @contextmanager
    def speech(self, **body):
        yield File(self.post("/audio/speech", body))

    def transcription(self, *, file, **fields):
        return wire.parsed(wire.form(self.url + "/audio/transcriptions", self.headers, fields, "file", file).read())

    def video(self, **body):
        video = self.answer("/videos", body)
        while video.status in ("queued", "in_progress"):
            answer = wire.get(f"{self.url}/videos/{video.id}", self.headers | {"X-Stainless-Poll-Helper": "true"})
            video = wire.parsed(answer.read())
            time.sleep(int(answer.headers["openai-poll-after-ms"] or 1000) / 1000)
        return video

    def content(self, video):
        return File(wire.get(f"{self.url}/videos/{video}/content", self.headers | {"Accept": "application/binary"}))
