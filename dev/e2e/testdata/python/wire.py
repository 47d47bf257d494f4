"""What the stand-ins of the vendors' Python SDKs share.

The SDKs cannot be installed where the tests run. A stand-in has the methods that the manual's page calls. It sends a method's keyword
arguments as members of the JSON body, as the SDKs do, and makes the members of the answer attributes.
"""

import json
import uuid
from urllib.error import HTTPError
from urllib.request import Request, urlopen


class Object(dict):
    """An object of an answer. A member that is absent is None, as an optional member of an SDK's type is."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)


def parsed(text):
    return json.loads(text, object_hook=Object)


def post(url, headers, body):
    """The open answer to a JSON body; a status of 400 and above is an HTTPError."""
    return urlopen(Request(url, json.dumps(body).encode(), headers | {"Content-Type": "application/json"}), timeout=90)


def form(url, headers, fields, name, file):
    """The open answer to a form with a file."""
    boundary = uuid.uuid4().hex
    body = b""
    for key, value in fields.items():
        body += f'--{boundary}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
    body += f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{file.name}"\r\n'.encode()
    body += b"Content-Type: application/octet-stream\r\n\r\n" + file.read() + f"\r\n--{boundary}--\r\n".encode()
    return urlopen(Request(url, body, headers | {"Content-Type": "multipart/form-data; boundary=" + boundary}), timeout=90)


def get(url, headers):
    return urlopen(Request(url, headers=headers), timeout=90)


def events(answer):
    """The data of a stream's events. A stream that is none, or that has no event, is an error."""
    if not answer.headers["Content-Type"].startswith("text/event-stream"):
        raise ValueError(f"the answer is {answer.headers['Content-Type']}, not a stream")
    some = False
    for line in answer:
        if line.startswith(b"data:") and line.strip() != b"data: [DONE]":
            some = True
            yield parsed(line.removeprefix(b"data:"))
    if not some:
        raise ValueError("the stream has no event")


__all__ = ["HTTPError", "Object", "events", "form", "get", "parsed", "post"]
