"""A stand-in of the langchain-openai package: one answer."""

from types import SimpleNamespace

import openai


class ChatOpenAI:
    def __init__(self, *, model, base_url, api_key):
        self.model, self.client = model, openai.OpenAI(base_url=base_url, api_key=api_key)

    def invoke(self, text):
        messages = [{"content": text, "role": "user"}]
        answer = self.client.chat.completions.create(messages=messages, model=self.model, stream=False)
        return SimpleNamespace(content=answer.choices[0].message.content)
