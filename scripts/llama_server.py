"""A real llama.cpp server on a port of the kernel's choice, for `make demo-llama` and `make test-engines`.

usage: llama_server.py MODEL.gguf ALIAS [THREADS [UBATCH]]

Prints its address as the one line on standard output once the model is loaded, and ends when standard input
does: whoever started it and is gone, however it went, leaves no server behind.
"""

import os
import signal
import socket
import sys

import xllamacpp


def free_port() -> int:
    """A port that is free now. The server wants a number, so there is a moment in which another could take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> None:
    model, alias, *figures = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = free_port()
    params.n_ctx = 4096
    # The demo reads with two clients at most, and starts one answer while another may still be running.
    params.n_parallel = 2
    params.n_gpu_layers = 0
    threads = int(figures[0]) if figures else min(2, os.cpu_count() or 1)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    if figures[1:]:
        # Tokens of a prompt that are computed together. With 1 the sums are those of generating, to the last bit.
        params.n_ubatch = int(figures[1])
    params.use_jinja = True
    params.warmup = False
    server = xllamacpp.Server(params)
    # As llama.cpp's own program: no new requests, and an end when those that run are over, or after half a minute.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # A proper shutdown waits for answers that run, which nobody will read.
    os._exit(0)


if __name__ == "__main__":
    main()
