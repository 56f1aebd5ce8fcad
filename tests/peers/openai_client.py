"""Everything of H4 with the official Python client, unchanged. The server plays the script of openai_clients.rs."""

import base64
import os

import openai
from openai import OpenAI

client = OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ["TOKEN"])
first, second = "One two three.", "Four five six."


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def refused(error, code, call):
    try:
        call()
    except error as caught:
        assert caught.code == code, caught
    else:
        raise AssertionError(f"{code} was not raised")


# Models.
assert client.models.list().data[0].id == "longhaul"
assert client.models.retrieve("longhaul").id == "longhaul"

# Chat completions: whole, streamed, with usage, with an image, over several turns.
whole = client.chat.completions.create(model="longhaul", messages=[user("chat")], max_completion_tokens=1000)
assert whole.choices[0].message.content == first and whole.choices[0].finish_reason == "stop"
assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (7, 3), whole.usage
messages = [user("chat"), assistant(first), user("more")]
text, usage = "", None
for chunk in client.chat.completions.create(
    model="longhaul", messages=messages, stream=True, stream_options={"include_usage": True}
):
    text += "".join(choice.delta.content or "" for choice in chunk.choices)
    usage = chunk.usage or usage
assert text == second and usage is not None, text
dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
base64.b64decode(dot)
picture = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{dot}"}},
]
seen = client.chat.completions.create(model="longhaul", messages=[user(picture)])
assert seen.choices[0].message.content == first

# A question, as content, answered by the next message.
messages += [assistant(second), user("run it")]
asked = client.chat.completions.create(model="longhaul", messages=messages)
assert asked.model_extra["longhaul"]["question"]["kind"] == "approval", asked
messages += [assistant(asked.choices[0].message.content), user("yes")]
assert client.chat.completions.create(model="longhaul", messages=messages).choices[0].message.content == "Done."

# What is refused.
hello = {"model": "longhaul", "messages": [user("hello")]}
refused(openai.BadRequestError, "unsupported_parameter", lambda: client.chat.completions.create(**hello, n=2))
refused(openai.NotFoundError, "model_not_found", lambda: client.chat.completions.create(**{**hello, "model": "gpt-9"}))
refused(openai.NotFoundError, "response_not_found", lambda: client.responses.retrieve("resp_x"))
wrong = OpenAI(base_url=os.environ["BASE_URL"], api_key="wrong")
refused(openai.AuthenticationError, "unauthorized", lambda: wrong.models.list())

# Responses: whole, streamed, by the client's own accumulator, retrieved from any event on.
one = client.responses.create(model="longhaul", input="respond", instructions="Be brief.", user="alice")
assert (one.status, one.output_text) == ("completed", first), one
assert one.usage.input_tokens == 7
with client.responses.stream(model="longhaul", input="more", previous_response_id=one.id) as stream:
    events = list(stream)
    two = stream.get_final_response()
assert two.output_text == second
assert [event.sequence_number for event in events] == list(range(len(events)))
assert client.responses.retrieve(one.id).output_text == first
again = list(client.responses.retrieve(two.id, stream=True, starting_after=4))
assert [event.sequence_number for event in again] == list(range(5, len(events))), again
assert again[-1].response.output_text == second

# Not the newest: a fork. A conversation: the same session.
fork = client.responses.create(model="longhaul", input="other", previous_response_id=one.id)
assert fork.output_text == second and fork.conversation.id != one.conversation.id

# A question, then its answer.
ask = client.responses.create(model="longhaul", input="run it", conversation=one.conversation.id)
assert (ask.status, ask.incomplete_details.reason) == ("incomplete", "question"), ask
done = client.responses.create(model="longhaul", input="yes", previous_response_id=ask.id)
assert (done.status, done.output[-1].content[0].text) == ("completed", "Done."), done

# In the background, and cancelled.
slow = client.responses.create(model="longhaul", input="slow", background=True, previous_response_id=done.id)
assert slow.status == "in_progress", slow
assert client.responses.cancel(slow.id).status == "cancelled"

client.responses.delete(one.id)
refused(openai.NotFoundError, "response_not_found", lambda: client.responses.retrieve(one.id))
print("all of it works")
