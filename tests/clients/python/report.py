"""What a program tells the test that started it: one JSON object on each line of standard output."""

import json


def tell(**fields):
    """Writes one line at once: the test may be waiting for it while the stream goes on."""
    print(json.dumps(fields), flush=True)


def client(module):
    """The first line: which client this is."""
    tell(client=module.__name__, version=module.__version__)


def raised(error):
    """The application was given an exception."""
    tell(raised=type(error).__name__, message=str(error))
