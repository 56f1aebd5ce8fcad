"""A real model, small enough for a test: SmolLM2 in llama.cpp's own server, on loopback. `small_model.py WEIGHTS PORT`

It goes on until it is killed. The window is smaller than what is
assumed of a local server that says nothing, and there is one slot, so that a test sees both.
"""

import signal
import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.port = int(sys.argv[2])
parameters.model_alias = {"smollm2"}
parameters.n_ctx = 2048
parameters.n_parallel = 1
parameters.cpuparams.n_threads = 2
parameters.use_jinja = True
# The same words every time.
parameters.sampling.temp = 0.0
parameters.sampling.seed = 1
server = xllamacpp.Server(parameters)
print("listening on", server.listening_address, flush=True)
signal.pause()
