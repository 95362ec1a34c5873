"""See http.sh. Standard library only: raw sockets, so that the client costs little."""

import os
import random
import re
import resource
import socket
import statistics
import subprocess
import sys
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")
PORT = 17879


def processor(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resident(pid):
    """The most it was since it began."""
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) * 1024


def connect(port=PORT):
    stream = socket.create_connection(("127.0.0.1", port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def request(path, accept="text/tab-separated-values", close=False):
    end = "Connection: close\r\n" if close else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n{end}\r\n".encode()


def encoded(text):
    return "/sparql?query=" + "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in text)


def answered(stream):
    """Reads one short answer: its head and a body of Content-Length or of chunks."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += more(stream)
    head, body = got.split(b"\r\n\r\n", 1)
    length = re.search(rb"(?i)content-length: (\d+)", head)
    while (len(body) < int(length.group(1))) if length else not re.search(rb"(^|\r\n)0\r\n(.*\r\n)*\r\n$", body):
        body += more(stream)
    return head


def more(stream):
    some = stream.recv(65536)
    if not some:
        raise EOFError("the server closed the connection")
    return some


def percentile(times, of):
    return sorted(times)[min(len(times) - 1, int(len(times) * of))]


def mixes(snowmelt, db, products, pid, rounds=3):
    """Milliseconds of processor time per mix: over HTTP the server's, in process the command's; medians of rounds in turn."""
    # The same texts: what is over HTTP has its parameters from the number of products, too.
    # The command begins with an empty pool, so both have seen what most mixes need.
    common = ["--use-case", "explore", "--clients", "1", "--warmup", "1500"]

    def run(where, count):
        subprocess.run([os.path.join(os.path.dirname(snowmelt), "snowmelt-lab"), "bsbm", "run", *where, *common, "--mixes", str(count)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def over(count):
        before = processor(pid)
        run(["--endpoint", f"http://127.0.0.1:{PORT}/sparql", "--connection-per-query", "--products", products], count)
        return processor(pid) - before

    def inside(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run([db + "-copy"], count)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    per = {over: [], inside: []}
    for _ in range(rounds):
        for way, times in per.items():
            times.append((way(500) - way(100)) / 400 * 1e3)
    ratio = statistics.median(a / b for a, b in zip(*per.values()))
    a, b = (statistics.median(times) for times in per.values())
    print(f"Explore, a connection per query: {a:.2f} ms of the server's processor time per mix; in process {b:.2f}; ratio {ratio:.2f} (medians of {rounds})")


def points(count=20000):
    text = "SELECT ?p ?o { <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer1/Product1> ?p ?o } LIMIT 1"
    stream, ask, times = connect(), request(encoded(text)), []
    for _ in range(count):
        begun = time.perf_counter()
        stream.sendall(ask)
        answered(stream)
        times.append((time.perf_counter() - begun) * 1e6)
    times = times[1000:]
    print(f"point query, connection kept: p50 {percentile(times, .5):.0f} us, p99 {percentile(times, .99):.0f} us")


def null_server(answer):
    """A server that answers each request with the same bytes: what the machine and this client cost."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        stream, _ = listener.accept()
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while stream.recv(65536):
            stream.sendall(answer)

    if os.fork() == 0:
        try:
            serve()
        finally:
            os._exit(0)
    return listener.getsockname()[1]


def paced(port, ask, rate=2000, seconds=10):
    """Percentiles of requests that are due at a fixed rate, from when they were due."""
    stream, times = connect(port), []
    begun = time.perf_counter()
    for number in range(rate * seconds):
        due = begun + number / rate
        while time.perf_counter() < due:
            pass
        stream.sendall(ask)
        answered(stream)
        times.append((time.perf_counter() - due) * 1e6)
    return percentile(times, .5), percentile(times, .99)


def open_loop():
    text = "SELECT ?p ?o { <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/instances/dataFromProducer1/Product1> ?p ?o } LIMIT 1"
    ask = request(encoded(text))
    stream = connect()
    stream.sendall(ask)
    null = null_server(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n" + b"x" * 100)
    (a50, a99), (b50, b99) = paced(null, ask), paced(PORT, ask)
    print(f"2000 a second: p50 {b50:.0f} us, p99 {b99:.0f} us; a server of constant bytes {a50:.0f} and {a99:.0f}; ratio of p99 {b99 / a99:.2f}")


def whole(pid, accept):
    """Seconds of SELECT *, and to its first byte; bytes."""
    stream = connect()
    begun = time.perf_counter()
    stream.sendall(request(encoded("SELECT * { ?s ?p ?o }"), accept, close=True))
    first = stream.recv(1)
    to_first = time.perf_counter() - begun
    size, buf = len(first), bytearray(1 << 20)
    while got := stream.recv_into(buf):
        size += got
    return time.perf_counter() - begun, to_first, size, resident(pid)


def rows_of(pid):
    stream = connect()
    stream.sendall(request(encoded("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"), close=True))
    text = b""
    while some := stream.recv(65536):
        text += some
    rows = int(re.findall(rb"(\d{4,})", text.split(b"\r\n\r\n", 1)[1])[-1])
    for name, accept in (("TSV", "text/tab-separated-values"), ("JSON", "application/sparql-results+json")):
        runs = sorted(whole(pid, accept) for _ in range(3))
        took, first, size, most = runs[1]
        print(f"SELECT * as {name}: {rows / took / 1e6:.2f} M rows/s ({rows} rows, {size / 1e6:.0f} MB in {took:.2f} s), first byte after {first * 1e3:.1f} ms, resident {most / 2**20:.0f} MiB")


def crowd(pid, clients, seconds):
    texts = ["SELECT * { ?s ?p ?o } LIMIT 20000", "ASK { ?s ?p ?o }", "SELECT (COUNT(*) AS ?n) { ?s a ?c }"]
    asks = [request(encoded(text), close=True) for text in texts]
    done, wrong, left = [0], [], [0]
    until = time.time() + seconds
    lock = threading.Lock()

    def client(seed):
        draw = random.Random(seed)
        while time.time() < until:
            try:
                begun = time.monotonic()
                stream = connect()
                stream.settimeout(120)
                connected = time.monotonic()
                stream.sendall(draw.choice(asks))
                sent = time.monotonic()
                if draw.random() < 1 / 3:
                    stream.recv(draw.randrange(1, 4096))
                    stream.close()
                    with lock:
                        left[0] += 1
                    continue
                got = b""
                while some := stream.recv(65536):
                    got += some
                fine = got.startswith(b"HTTP/1.1 200") and re.search(rb"\r\n0\r\n|(?i:content-length)", got)
                with lock:
                    done[0] += 1
                    if not fine:
                        # A client that is slow to send has itself to blame.
                        wrong.append((got[:200], [round(t - begun, 3) for t in (connected, sent, time.monotonic())]))
            except OSError as error:
                with lock:
                    wrong.append((repr(error), round(time.monotonic() - begun, 3)))

    threads = [threading.Thread(target=client, args=(seed,)) for seed in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    most = resident(pid)
    print(f"{clients} clients for {seconds} s: {done[0]} answers, {left[0]} left in the middle, {len(wrong)} wrong, resident at most {most / 2**20:.0f} MiB")
    for one in wrong[:3]:
        print("  ", one)


def main():
    snowmelt, db, products, clients, seconds = sys.argv[1:]
    # Both have the database open: the one in process has a copy.
    if not os.path.exists(db + "-copy"):
        subprocess.run([snowmelt, "backup", db, db + "-copy"], check=True, stdout=subprocess.DEVNULL)
    server = subprocess.Popen([snowmelt, "serve", db, "--listen", f"127.0.0.1:{PORT}", "--memory", "2GiB", "--connections", "512", "--head-deadline", "60"], stderr=subprocess.DEVNULL)
    try:
        while True:
            try:
                connect().close()
                break
            except OSError:
                time.sleep(0.05)
        print("budget 2048 MiB")
        mixes(snowmelt, db, products, server.pid)
        points()
        open_loop()
        rows_of(server.pid)
        crowd(server.pid, int(clients), int(seconds))
    finally:
        server.terminate()
        server.wait()


main()
