"""What each of these programs is: an application that is given jobs and tells what it saw of each.

A job is a line of JSON on standard input: `run` is its number, `way` how to ask, `base` where, `n` how many choices to
ask for. Each has a thread of its own, or is a task of one event loop, so that several can be under way. What is told is
a line of JSON on standard output with the number of its run; the first line says which client this is. It ends with its
input.

To make a client of HTTP takes a tenth of a second, which is most of the time of a short answer; so an application has
one, as it should.
"""

import asyncio
import inspect
import json
import os
import sys
import threading
from importlib.metadata import version

# What libraries print goes elsewhere, so that no line of ours is torn by it.
_output = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
_turn = threading.Lock()


def _tell(**fields):
    """Writes one line at once: the test may be waiting for it while the stream goes on."""
    line = json.dumps(fields) + "\n"
    with _turn:
        _output.write(line)
        _output.flush()


class Run:
    """What the application was asked to do, and where it tells what it saw."""

    def __init__(self, job):
        self.base = job["base"]
        self.n = job["n"]
        self._number = job["run"]

    def head(self, headers):
        """The head of a response has come."""
        self._tell(head=headers.get("x-streamweld-stream-id"))

    def object(self, value):
        """The application was given this object by its client, here as plain data, whole."""
        self._tell(object=value)

    def text(self, part):
        """That object held a part of the text."""
        if part:
            self._tell(text=part)

    def whole(self, finish):
        """The stream came to an end that the application takes for a proper one."""
        self._tell(whole=finish)

    def raised(self, error):
        """The application was given an exception."""
        self._tell(raised=type(error).__name__, message=str(error))

    def _tell(self, **fields):
        _tell(run=self._number, **fields)


def serve(distribution, *ways):
    """Does the jobs that come. A way is a function of a run, named as the jobs name it, that gives the finish reason."""
    known = {way.__name__: way for way in ways}
    _tell(client=distribution, version=version(distribution))
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    threads = []
    for line in sys.stdin:
        job = json.loads(line)
        threads.append(threading.Thread(target=_do, args=(known[job["way"]], Run(job), loop)))
        threads[-1].start()
    # Libraries do not work any more while the interpreter waits for threads by itself.
    for thread in threads:
        thread.join()


def _do(way, run, loop):
    try:
        if inspect.iscoroutinefunction(way):
            finish = asyncio.run_coroutine_threadsafe(way(run), loop).result()
        else:
            finish = way(run)
    except Exception as error:  # whatever an application would see
        run.raised(error)
    else:
        run.whole(finish)
