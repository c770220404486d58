"""An application on LiteLLM, with its defaults."""

import os

# Its list of prices is taken from the package and not from the network.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import openai as openai_sdk

import application

CLIENT = openai_sdk.OpenAI(base_url="http://localhost/v1", api_key="test")
CLIENT_ASYNC = openai_sdk.AsyncOpenAI(base_url="http://localhost/v1", api_key="test")
MESSAGES = [{"role": "user", "content": "hi"}]


def route(run, name):
    """How a provider is asked."""
    base = {
        "openai": run.base + "/v1",
        "anthropic": run.base,
        "gemini": run.base + "/v1beta",
    }[name]
    return {
        "model": f"{name}/mock",
        "api_base": base,
        "api_key": "test",
        "messages": MESSAGES,
        "stream": True,
    }


def route_openai(run, client):
    """How OpenAI is asked, with a client that there is."""
    return {**route(run, "openai"), "n": run.n, "client": client.with_options(base_url=run.base + "/v1")}


def see(run, chunk):
    """Tells of a chunk; gives its finish reason, if there is one."""
    run.object(chunk.model_dump(mode="json", warnings=False))
    finish = None
    for choice in chunk.choices:
        if choice.index == 0:
            run.text(choice.delta.content)
            finish = choice.finish_reason
    return finish


def read(run, asked):
    finish = None
    for chunk in litellm.completion(**asked):
        finish = see(run, chunk) or finish
    return finish


async def read_async(run, asked):
    finish = None
    async for chunk in await litellm.acompletion(**asked):
        finish = see(run, chunk) or finish
    return finish


def openai(run):
    return read(run, route_openai(run, CLIENT))


async def openai_async(run):
    return await read_async(run, route_openai(run, CLIENT_ASYNC))


def anthropic(run):
    return read(run, route(run, "anthropic"))


async def anthropic_async(run):
    return await read_async(run, route(run, "anthropic"))


def gemini(run):
    return read(run, route(run, "gemini"))


async def gemini_async(run):
    return await read_async(run, route(run, "gemini"))


application.serve("litellm", openai, openai_async, anthropic, anthropic_async, gemini, gemini_async)
