"""Questions on a worker's standard input, answers on its output: 8 bytes of length, then a text; of
an answer it is JSON. The first answer is empty: the worker is ready.
"""

import json
import os
import struct
import sys


def output():
    """The pipe for answers. What an engine prints must not come between them: it goes to the log."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def serve(out, ask):
    """Answers each question by what `ask` makes of its text, until there are no more."""
    send(out, b"")
    while head := sys.stdin.buffer.read(8):
        text = sys.stdin.buffer.read(struct.unpack("<Q", head)[0]).decode()
        send(out, json.dumps(ask(text)).encode())


def send(out, answer):
    out.write(struct.pack("<Q", len(answer)) + answer)
    out.flush()
