"""What a client program tells the test that started it: one JSON object on each line of standard output."""

import json
import sys


def tell(**fields):
    """Writes one line at once: the test may be waiting for it while the stream goes on."""
    print(json.dumps(fields), flush=True)


def client(module):
    """The first line: which client this is."""
    tell(client=module.__name__, version=module.__version__)


def head(response):
    """The head of a response has come."""
    tell(head=response.headers.get("x-streamweld-stream-id"))


def text(part):
    """The application was given a part of the text."""
    if part:
        tell(text=part)


def whole(finish):
    """The stream came to an end that the application takes for a proper one."""
    tell(whole=finish)


def raised(error):
    """The application was given an exception."""
    tell(raised=type(error).__name__, message=str(error))


def runs(known):
    """The requests to make, one for each argument, in order. Each is the name of a function in `known`."""
    return [known[name] for name in sys.argv[1:]]
