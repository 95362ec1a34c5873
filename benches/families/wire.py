"""A query over HTTP with little cost of the client's: a connection for each, made before the clock
starts; an answer is taken apart after the clock has stopped."""

import socket
import time
from urllib.parse import quote_plus, urlsplit

ACCEPT = "application/sparql-results+json"


class Refused(Exception):
    """An answer that is none, and the server lives on."""


class TooLate(Exception):
    """No answer within the time; the server may still be at it."""


def ask(endpoint, text, seconds, graph=None, accept=ACCEPT):
    """Milliseconds from the first byte sent to the last received, and the body."""
    address = urlsplit(endpoint)
    form = "query=" + quote_plus(text)
    if graph:
        form += "&default-graph-uri=" + quote_plus(graph)
    request = (
        "POST %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\nContent-Type: application/x-www-form-urlencoded\r\n"
        "Content-Length: %d\r\nConnection: close\r\n\r\n%s"
        % (address.path, address.netloc, accept, len(form), form)).encode()
    deadline = time.monotonic() + seconds
    with socket.create_connection((address.hostname, address.port)) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        begun = time.perf_counter()
        stream.sendall(request)
        got = received(stream, deadline)
        took = (time.perf_counter() - begun) * 1e3
    return took, body_of(got)


def received(stream, deadline):
    """All bytes until the answer is complete or the server closes."""
    got, chunk = bytearray(), bytearray(1 << 20)
    whole = None
    while whole is None or not whole(got):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TooLate()
        stream.settimeout(left)
        try:
            size = stream.recv_into(chunk)
        except TimeoutError:
            raise TooLate() from None
        if not size:
            break
        got += memoryview(chunk)[:size]
        if whole is None and b"\r\n\r\n" in got:
            whole = end_of(got)
    return got


def end_of(got):
    """A function that tells from the bytes so far whether they are the whole answer."""
    head, _, _ = bytes(got).partition(b"\r\n\r\n")
    fields = fields_of(head)
    if "content-length" in fields:
        size = len(head) + 4 + int(fields["content-length"])
        return lambda got: len(got) >= size
    if fields.get("transfer-encoding", "").lower() == "chunked":
        # No text of JSON has these bytes: it writes its line ends as \\r and \\n.
        return lambda got: got.endswith(b"\r\n0\r\n\r\n")
    return lambda got: False


def fields_of(head):
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def body_of(got):
    head, _, body = bytes(got).partition(b"\r\n\r\n")
    if not head:
        raise Refused("the server closed the connection")
    if fields_of(head).get("transfer-encoding", "").lower() == "chunked":
        body = joined(body)
    status = head.split(b" ", 2)[1]
    if status != b"200":
        raise Refused("HTTP %s: %s" % (status.decode(), body.decode(errors="replace").strip()))
    return body


def joined(chunks):
    out, at = [], 0
    while True:
        end = chunks.find(b"\r\n", at)
        if end < 0:
            raise Refused("the answer ends in the middle")
        size = int(chunks[at:end].split(b";")[0], 16)
        if size == 0:
            return b"".join(out)
        out.append(chunks[end + 2:end + 2 + size])
        at = end + 2 + size + 2
