"""An application on the Anthropic SDK for Python, with the defaults of the SDK.

Makes one streaming request for each argument, one after the other, and tells what it saw of each:
`messages`, `messages_async`, `helper`, `helper_async`. BASE_URL is where it sends them.
"""

import asyncio
import os

import anthropic

import report

OPTIONS = {"base_url": os.environ["BASE_URL"], "api_key": "test"}
MESSAGE = {"model": "mock", "max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]}


def seen(event):
    """Tells the text of an event; gives its stop reason, if there is one."""
    if event.type == "content_block_delta":
        report.text(event.delta.text)
    return event.delta.stop_reason if event.type == "message_delta" else None


def messages():
    stream = anthropic.Anthropic(**OPTIONS).messages.create(**MESSAGE, stream=True)
    report.head(stream.response)
    finish = None
    for event in stream:
        finish = seen(event) or finish
    report.whole(finish)


def messages_async():
    async def run():
        stream = await anthropic.AsyncAnthropic(**OPTIONS).messages.create(**MESSAGE, stream=True)
        report.head(stream.response)
        finish = None
        async for event in stream:
            finish = seen(event) or finish
        report.whole(finish)

    asyncio.run(run())


def helper():
    with anthropic.Anthropic(**OPTIONS).messages.stream(**MESSAGE) as stream:
        report.head(stream.response)
        for text in stream.text_stream:
            report.text(text)
        report.whole(stream.get_final_message().stop_reason)


def helper_async():
    async def run():
        async with anthropic.AsyncAnthropic(**OPTIONS).messages.stream(**MESSAGE) as stream:
            report.head(stream.response)
            async for text in stream.text_stream:
                report.text(text)
            report.whole((await stream.get_final_message()).stop_reason)

    asyncio.run(run())


report.client(anthropic)
for run in report.runs(globals()):
    try:
        run()
    except Exception as error:  # whatever an application would see
        report.raised(error)
