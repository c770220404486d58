"""An application on the OpenAI SDK for Python, with the defaults of the SDK."""

import openai

import application

MESSAGES = [{"role": "user", "content": "hi"}]


CLIENT = openai.OpenAI(base_url="http://localhost/v1", api_key="test")
CLIENT_ASYNC = openai.AsyncOpenAI(base_url="http://localhost/v1", api_key="test")


def sync(run):
    return CLIENT.with_options(base_url=run.base + "/v1")


def other(run):
    return CLIENT_ASYNC.with_options(base_url=run.base + "/v1")


def see_chunk(run, chunk):
    """Tells of a chunk of chat or completions; gives its finish reason, if there is one."""
    run.object(chunk.model_dump(mode="json", warnings=False))
    finish = None
    for choice in chunk.choices:
        if choice.index == 0:
            run.text(choice.text if hasattr(choice, "text") else choice.delta.content)
            finish = choice.finish_reason
    return finish


def see_event(run, event):
    """Tells of an event of Responses; gives the status that the response has at its end."""
    run.object(event.model_dump(mode="json", warnings=False))
    if event.type == "response.output_text.delta":
        run.text(event.delta)
    elif event.type in ("response.completed", "response.incomplete"):
        return event.response.status
    return None


def see_helper(run, event):
    """Tells of an event of the chat helper."""
    run.object(event.model_dump(mode="json", warnings=False))
    if event.type == "content.delta":
        run.text(event.delta)


def read(run, stream, see):
    run.head(stream.response.headers)
    finish = None
    for item in stream:
        finish = see(run, item) or finish
    return finish


async def read_async(run, stream, see):
    run.head(stream.response.headers)
    finish = None
    async for item in stream:
        finish = see(run, item) or finish
    return finish


def chat(run):
    stream = sync(run).chat.completions.create(model="mock", messages=MESSAGES, n=run.n, stream=True)
    return read(run, stream, see_chunk)


async def chat_async(run):
    stream = await other(run).chat.completions.create(model="mock", messages=MESSAGES, n=run.n, stream=True)
    return await read_async(run, stream, see_chunk)


def chat_helper(run):
    with sync(run).chat.completions.stream(model="mock", messages=MESSAGES, n=run.n) as stream:
        for event in stream:
            see_helper(run, event)
        final = stream.get_final_completion()
    run.object(final.model_dump(mode="json", warnings=False))
    return final.choices[0].finish_reason


async def chat_helper_async(run):
    async with other(run).chat.completions.stream(model="mock", messages=MESSAGES, n=run.n) as stream:
        async for event in stream:
            see_helper(run, event)
        final = await stream.get_final_completion()
    run.object(final.model_dump(mode="json", warnings=False))
    return final.choices[0].finish_reason


def completions(run):
    return read(run, sync(run).completions.create(model="mock", prompt="hi", n=run.n, stream=True), see_chunk)


async def completions_async(run):
    stream = await other(run).completions.create(model="mock", prompt="hi", n=run.n, stream=True)
    return await read_async(run, stream, see_chunk)


def responses(run):
    return read(run, sync(run).responses.create(model="mock", input="hi", stream=True), see_event)


async def responses_async(run):
    stream = await other(run).responses.create(model="mock", input="hi", stream=True)
    return await read_async(run, stream, see_event)


def responses_helper(run):
    with sync(run).responses.stream(model="mock", input="hi") as stream:
        finish = None
        for event in stream:
            finish = see_event(run, event) or finish
        # Of an incomplete response it has none.
        return finish if finish == "incomplete" else stream.get_final_response().status


async def responses_helper_async(run):
    async with other(run).responses.stream(model="mock", input="hi") as stream:
        finish = None
        async for event in stream:
            finish = see_event(run, event) or finish
        return finish if finish == "incomplete" else (await stream.get_final_response()).status


application.serve(
    "openai",
    chat,
    chat_async,
    chat_helper,
    chat_helper_async,
    completions,
    completions_async,
    responses,
    responses_async,
    responses_helper,
    responses_helper_async,
)
