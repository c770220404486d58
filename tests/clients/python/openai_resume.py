"""An application on the OpenAI SDK for Python that resumes a response by the SDK's own calls.

Asks for a response and is cut off. Then it goes on in the way that its argument names: `retrieve`, `retrieve_async` or
`stream`. In the end it asks once more behind the last event. Tells the numbers of all events, and what it saw of each
part. BASE_URL is where it sends its requests.
"""

import asyncio
import os
import sys

import openai

import report

OPTIONS = {"base_url": os.environ["BASE_URL"] + "/v1", "api_key": "test"}


class Reading:
    """What the application has read."""

    def __init__(self):
        self.name = None
        self.number = None

    def take(self, event):
        if event.type == "response.created":
            self.name = event.response.id
        self.number = event.sequence_number
        report.tell(number=event.sequence_number)
        if event.type == "response.output_text.delta":
            report.tell(text=event.delta)
        if event.type == "response.completed":
            report.tell(whole=event.response.status)


def begin(client, reading):
    try:
        for event in client.responses.create(model="mock", input="hi", stream=True):
            reading.take(event)
    except Exception as error:  # whatever an application would see
        report.raised(error)


def retrieve(reading):
    client = openai.OpenAI(**OPTIONS)
    for event in client.responses.retrieve(reading.name, stream=True, starting_after=reading.number):
        reading.take(event)


def retrieve_async(reading):
    async def run():
        client = openai.AsyncOpenAI(**OPTIONS)
        stream = await client.responses.retrieve(reading.name, stream=True, starting_after=reading.number)
        async for event in stream:
            reading.take(event)

    asyncio.run(run())


def stream(reading):
    client = openai.OpenAI(**OPTIONS)
    with client.responses.stream(response_id=reading.name, starting_after=reading.number) as events:
        for event in events:
            reading.take(event)


report.client(openai)
reading = Reading()
begin(openai.OpenAI(**OPTIONS), reading)
resume = globals()[sys.argv[1]]
try:
    resume(reading)
    report.tell(again=reading.number)
    resume(reading)
    report.tell(over=True)
except Exception as error:  # whatever an application would see
    report.raised(error)
