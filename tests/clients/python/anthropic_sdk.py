"""An application on the Anthropic SDK for Python, with the defaults of the SDK."""

import anthropic

import application

MESSAGE = {
    "model": "mock",
    "max_tokens": 4096,
    "messages": [{"role": "user", "content": "hi"}],
    # What has no argument of its own any more: models that go on with the beginning of an answer still take it.
    "extra_body": {"temperature": 0},
}


CLIENT = anthropic.Anthropic(api_key="test")
CLIENT_ASYNC = anthropic.AsyncAnthropic(api_key="test")


def sync(run):
    return CLIENT.with_options(base_url=run.base)


def other(run):
    return CLIENT_ASYNC.with_options(base_url=run.base)


def see(run, event):
    """Tells of an event; gives its stop reason, if there is one."""
    run.object(event.model_dump(mode="json", warnings=False))
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        run.text(event.delta.text)
    return event.delta.stop_reason if event.type == "message_delta" else None


def messages(run):
    stream = sync(run).messages.create(**MESSAGE, stream=True)
    run.head(stream.response.headers)
    finish = None
    for event in stream:
        finish = see(run, event) or finish
    return finish


async def messages_async(run):
    stream = await other(run).messages.create(**MESSAGE, stream=True)
    run.head(stream.response.headers)
    finish = None
    async for event in stream:
        finish = see(run, event) or finish
    return finish


def helper(run):
    with sync(run).messages.stream(**MESSAGE) as stream:
        run.head(stream.response.headers)
        for event in stream:
            see(run, event)
        final = stream.get_final_message()
    run.object(final.model_dump(mode="json", warnings=False))
    return final.stop_reason


async def helper_async(run):
    async with other(run).messages.stream(**MESSAGE) as stream:
        run.head(stream.response.headers)
        async for event in stream:
            see(run, event)
        final = await stream.get_final_message()
    run.object(final.model_dump(mode="json", warnings=False))
    return final.stop_reason


application.serve("anthropic", messages, messages_async, helper, helper_async)
