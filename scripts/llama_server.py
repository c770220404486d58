"""A real llama.cpp server on a port of the kernel's choice, for `make demo-llama`.

usage: llama_server.py MODEL.gguf ALIAS

Prints its address as the one line on standard output once the model is loaded, and ends when standard input
does: whoever started it and is gone, however it went, leaves no server behind.
"""

import os
import socket
import sys

import xllamacpp


def free_port() -> int:
    """A port that is free now. The server wants a number, so there is a moment in which another could take it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main() -> None:
    model, alias = sys.argv[1:]
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {alias}
    params.hostnames = ["127.0.0.1"]
    params.port = free_port()
    params.n_ctx = 4096
    # The demo reads with two clients at most, and starts one answer while another may still be running.
    params.n_parallel = 2
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = min(2, os.cpu_count() or 1)
    params.use_jinja = True
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    # A proper shutdown waits for answers that run, which nobody will read.
    os._exit(0)


if __name__ == "__main__":
    main()
