"""An application on the OpenAI models of LangChain for Python, with their defaults."""

import openai
from langchain_openai import ChatOpenAI

import application

HTTP = {"http_client": openai.DefaultHttpxClient(), "http_async_client": openai.DefaultAsyncHttpxClient()}


def model(run, **more):
    return ChatOpenAI(model="mock", base_url=run.base + "/v1", api_key="test", **HTTP, **more)


def see(run, chunk):
    """Tells of a chunk; gives the finish reason, or the status of a response, if there is one."""
    run.object(chunk.model_dump(mode="json"))
    run.text(chunk.text)
    return chunk.response_metadata.get("finish_reason") or chunk.response_metadata.get("status")


def read(run, stream):
    finish = None
    for chunk in stream:
        finish = see(run, chunk) or finish
    return finish


async def read_async(run, stream):
    finish = None
    async for chunk in stream:
        finish = see(run, chunk) or finish
    return finish


def chat(run):
    return read(run, model(run, n=run.n).stream("hi"))


async def chat_async(run):
    return await read_async(run, model(run, n=run.n).astream("hi"))


def responses(run):
    return read(run, model(run, use_responses_api=True).stream("hi"))


async def responses_async(run):
    return await read_async(run, model(run, use_responses_api=True).astream("hi"))


application.serve("langchain-openai", chat, chat_async, responses, responses_async)
