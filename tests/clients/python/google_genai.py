"""An application on the Google Gen AI SDK for Python, with the defaults of the SDK."""

from google import genai
from google.genai import types

import application


CLIENT = genai.Client(api_key="test")


def asked(run):
    options = types.HttpOptions(base_url=run.base)
    return {"model": "mock", "contents": "hi", "config": types.GenerateContentConfig(http_options=options)}


def see(run, chunk, first):
    """Tells of a chunk; gives the finish reason of its first candidate, if there is one."""
    if first and chunk.sdk_http_response:
        run.head(chunk.sdk_http_response.headers)
    run.object(chunk.model_dump(mode="json"))
    for candidate in chunk.candidates or []:
        if not candidate.index:
            for part in (candidate.content and candidate.content.parts) or []:
                run.text(part.text)
            return candidate.finish_reason and candidate.finish_reason.value
    return None


def generate(run):
    finish, first = None, True
    for chunk in CLIENT.models.generate_content_stream(**asked(run)):
        finish, first = see(run, chunk, first) or finish, False
    return finish


async def generate_async(run):
    finish, first = None, True
    async for chunk in await CLIENT.aio.models.generate_content_stream(**asked(run)):
        finish, first = see(run, chunk, first) or finish, False
    return finish


application.serve("google-genai", generate, generate_async)
