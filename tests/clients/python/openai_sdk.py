"""An application on the OpenAI SDK for Python, with the defaults of the SDK.

Makes one streaming request for each argument, one after the other, and tells what it saw of each:
`chat`, `chat_async`, `chat_helper`, `chat_helper_async`, `completions`, `completions_async`, `responses`,
`responses_async`.
BASE_URL is where it sends them.
"""

import asyncio
import os

import openai

import report

OPTIONS = {"base_url": os.environ["BASE_URL"] + "/v1", "api_key": "test"}
CHAT = {"model": "mock", "messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {"model": "mock", "prompt": "hi", "stream": True}
RESPONSE = {"model": "mock", "input": "hi", "stream": True}


def seen(chunk):
    """Tells the text of a chunk; gives its finish reason, if there is one."""
    if not chunk.choices:
        return None
    choice = chunk.choices[0]
    report.text(choice.text if hasattr(choice, "text") else choice.delta.content)
    return choice.finish_reason


def seen_of_response(event):
    """Tells the text of an event; gives the status that the response has at its end."""
    if event.type == "response.output_text.delta":
        report.text(event.delta)
    elif event.type in ("response.completed", "response.incomplete"):
        return event.response.status
    return None


def read(stream, seen=seen):
    report.head(stream.response)
    finish = None
    for chunk in stream:
        finish = seen(chunk) or finish
    report.whole(finish)


async def read_async(stream, seen=seen):
    report.head(stream.response)
    finish = None
    async for chunk in stream:
        finish = seen(chunk) or finish
    report.whole(finish)


def chat():
    read(openai.OpenAI(**OPTIONS).chat.completions.create(**CHAT, stream=True))


def completions():
    read(openai.OpenAI(**OPTIONS).completions.create(**COMPLETION))


def chat_async():
    async def run():
        await read_async(await openai.AsyncOpenAI(**OPTIONS).chat.completions.create(**CHAT, stream=True))

    asyncio.run(run())


def completions_async():
    async def run():
        await read_async(await openai.AsyncOpenAI(**OPTIONS).completions.create(**COMPLETION))

    asyncio.run(run())


def responses():
    read(openai.OpenAI(**OPTIONS).responses.create(**RESPONSE), seen_of_response)


def responses_async():
    async def run():
        await read_async(await openai.AsyncOpenAI(**OPTIONS).responses.create(**RESPONSE), seen_of_response)

    asyncio.run(run())


def chat_helper():
    with openai.OpenAI(**OPTIONS).chat.completions.stream(**CHAT) as stream:
        for event in stream:
            if event.type == "content.delta":
                report.text(event.delta)
        report.whole(stream.get_final_completion().choices[0].finish_reason)


def chat_helper_async():
    async def run():
        async with openai.AsyncOpenAI(**OPTIONS).chat.completions.stream(**CHAT) as stream:
            async for event in stream:
                if event.type == "content.delta":
                    report.text(event.delta)
            final = await stream.get_final_completion()
            report.whole(final.choices[0].finish_reason)

    asyncio.run(run())


report.client(openai)
for run in report.runs(globals()):
    try:
        run()
    except Exception as error:  # whatever an application would see
        report.raised(error)
