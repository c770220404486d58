"""An application that reads a chat with httpx-sse, and takes an answer for whole when it has seen `[DONE]`."""

import json

import httpx
import httpx_sse

import application

BODY = {"model": "mock", "messages": [{"role": "user", "content": "hi"}], "stream": True}


def see(run, event):
    """Tells of an event; gives the finish reason in it, if there is one."""
    run.object({"event": event.event, "data": event.data, "id": event.id, "retry": event.retry})
    if event.data == "[DONE]":
        return None
    finish = None
    for choice in json.loads(event.data).get("choices", []):
        if choice["index"] == 0:
            run.text(choice["delta"].get("content"))
            finish = choice["finish_reason"]
    return finish


CLIENT = httpx.Client(timeout=None)
CLIENT_ASYNC = httpx.AsyncClient(timeout=None)


def asked(run):
    return {"method": "POST", "url": run.base + "/v1/chat/completions", "json": {**BODY, "n": run.n}}


def chat(run):
    finish = None
    with httpx_sse.connect_sse(CLIENT, **asked(run)) as source:
        run.head(source.response.headers)
        for event in source.iter_sse():
            finish = see(run, event) or finish
    return finish


async def chat_async(run):
    finish = None
    async with httpx_sse.aconnect_sse(CLIENT_ASYNC, **asked(run)) as source:
        run.head(source.response.headers)
        async for event in source.aiter_sse():
            finish = see(run, event) or finish
    return finish


application.serve("httpx-sse", chat, chat_async)
