"""Fills a journal over HTTP, kills the server, and times restarts: see restart.sh, which calls it."""

import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PART, SNOWMELT, DB, HERE = sys.argv[1:5]
TURNS = int(os.environ.get("TURNS", "3"))
MIB = int(os.environ.get("MIB", "1024"))
EACH = int(os.environ.get("EACH", "2000"))
MEMORY = os.environ.get("MEMORY", "4GiB")
IOPS, BYTES_PER_S = 3000, 125 << 20
PORT = 17878


class Server:
    """`snowmelt serve`, with its checkpointer held; `wrapped` in another command."""

    def __init__(self, *switches, wrapped=()):
        command = [*wrapped, SNOWMELT, "serve", DB, "--listen", "127.0.0.1:%d" % PORT, "--checkpoint", "held",
                   "--memory", MEMORY, *switches]
        self.begun = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.wrapped = bool(wrapped)
        self.said = []
        self.listener = threading.Thread(target=lambda: self.said.extend(self.process.stderr), daemon=True)
        self.listener.start()

    def connect(self):
        while True:
            if self.process.poll() is not None:
                sys.exit("the server ended: " + "".join(self.said))
            try:
                connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=600)
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError:
                time.sleep(0.001)

    def kill(self):
        pid = self.process.pid
        if self.wrapped:
            # The wrapper's only child is the server; it cleans up when that is gone.
            pid = int(open("/proc/%d/task/%d/children" % (pid, pid)).read().split()[0])
        os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.listener.join()


def ask(connection, path, body, kind):
    connection.request("POST", path, body, {"Content-Type": kind, "Accept": "text/csv"})
    answer = connection.getresponse()
    text = answer.read().decode()
    if answer.status >= 300:
        sys.exit("%d: %s" % (answer.status, text))
    return text.replace("\r", "")


def update(connection, text):
    ask(connection, "/update", text, "application/sparql-update")


def query(connection, text):
    return ask(connection, "/sparql", text, "application/sparql-query")


def stats(connection):
    connection.request("GET", "/stats")
    return json.loads(connection.getresponse().read())["journal"]


def forget(folder):
    """Throws the files out of the page cache; what is dirty is written first."""
    os.sync()
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def triples(transaction, count, rng):
    """Reviews, about: subjects and texts of their own, products and people that others speak of, too."""
    lines = []
    for i in range(count // 5):
        s = "<http://example.org/review/%d-%d>" % (transaction, i)
        lines += [
            "%s <http://example.org/reviewFor> <http://example.org/product/%d> ." % (s, rng.randrange(20000)),
            "%s <http://example.org/reviewer> <http://example.org/person/%d> ." % (s, rng.randrange(10000)),
            '%s <http://example.org/title> "title %x of review %d of %d"@en .' % (s, rng.getrandbits(64), i, transaction),
            "%s <http://example.org/rating> %d ." % (s, rng.randrange(10)),
            '%s <http://example.org/text> "%s" .' % (s, " ".join("%x" % rng.getrandbits(32) for _ in range(12))),
        ]
    return lines


def last_title(transaction, i):
    return "SELECT ?t { <http://example.org/review/%d-%d> <http://example.org/title> ?t }" % (transaction, i)


def insert(connection, transactions, each, rng, enough=lambda n: False):
    n = 0
    for n in range(transactions):
        update(connection, "INSERT DATA {\n%s\n}" % "\n".join(triples(n, each, rng)))
        if enough(n):
            break
    return n


def restart(question, expected, *switches, wrapped=()):
    """Seconds from exec to the first right answer, and what the server says it did."""
    forget(DB)
    server = Server(*switches, wrapped=wrapped)
    connection = server.connect()
    answer = query(connection, question)
    seconds = time.monotonic() - server.begun
    if answer != expected:
        sys.exit("a wrong answer: %r instead of %r" % (answer, expected))
    recovery = stats(connection)["last_recovery"]
    server.kill()
    return seconds, recovery


def report(what, runs, bound):
    seconds = [s for s, _ in runs]
    median = statistics.median(seconds)
    r = runs[-1][1]
    print("%-44s %6.3f s  (%s)  bound %.3f s: %s" % (
        what, median, " ".join("%.3f" % s for s in sorted(seconds)), bound, "met" if median <= bound else "MISSED"))
    print("    recovery %.3f s (median): %d MiB in %d requests of %d KiB, %d at a time; %d commits; %d pages, %d in memory%s" % (
        statistics.median(x["seconds"] for _, x in runs), r["read_bytes"] >> 20, r["requests"], r["request_bytes"] / 1024,
        r["concurrency"], r["commits"], r["pages"], r["pages_in_memory"],
        "; the newest %d commits whole in memory" % r["newest_commits_in_memory"] if "newest_commits_in_memory" in r else ""),
        flush=True)


def small():
    rng = random.Random(1)
    server = Server()
    connection = server.connect()
    begun = time.monotonic()
    insert(connection, 3000, 100, rng)
    took = time.monotonic() - begun
    question = last_title(2999, 19)
    expected = query(connection, question)
    count = query(connection, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
    assert expected.count("\n") == 2 and count.split()[1] == "300001", (expected, count)
    journal = stats(connection)["checkpoints"]["backlog_bytes"]
    server.kill()
    print("300 000 triples in 3000 transactions in %.1f s, %.1f MiB of journal" % (took, journal / 2**20))
    report("restart", [restart(question, expected) for _ in range(TURNS)], 0.5)
    virtuoso()


def large():
    rng = random.Random(2)
    server = Server()
    connection = server.connect()
    begun = time.monotonic()
    grown = lambda n: n % 8 == 0 and stats(connection)["checkpoints"]["backlog_bytes"] >= MIB << 20
    n = insert(connection, 1 << 30, EACH, rng, grown)
    took = time.monotonic() - begun
    question = last_title(n, EACH // 5 - 1)
    expected = query(connection, question)
    assert expected.count("\n") == 2, expected
    journal = stats(connection)["checkpoints"]["backlog_bytes"]
    server.kill()
    print("%d transactions of %d triples in %.0f s, %.0f MiB of journal, %.1f bytes a triple" % (
        n + 1, EACH, took, journal / 2**20, journal / (EACH * (n + 1))), flush=True)
    bound = 1 + journal / BYTES_PER_S
    runs = [restart(question, expected) for _ in range(TURNS)]
    report("the device as it is", runs, bound)
    runs = [restart(question, expected, "--device", "sim:wide-slow") for _ in range(TURNS)]
    report("wide but slow, simulated", runs, bound)
    if os.geteuid() == 0:
        capped = [os.path.join(HERE, "capped.sh"), DB, str(IOPS), str(BYTES_PER_S), "--"]
        report("capped at %d IOPS, 125 MiB/s" % IOPS, [restart(question, expected, wrapped=capped) for _ in range(TURNS)], bound)
    else:
        print("capped volume: skipped, needs root")


def virtuoso():
    """The same with Virtuoso: checkpoints off, killed, and the time until it answers."""
    # Debian renames its client, which unixODBC's would clash with.
    client = shutil.which("isql-vt") or shutil.which("isql")
    if not (shutil.which("virtuoso-t") and client):
        print("virtuoso: skipped, virtuoso-t and isql are not installed (Debian: apt-get install virtuoso-opensource-7-bin)")
        return
    folder = tempfile.mkdtemp(prefix="virtuoso-", dir=os.path.dirname(DB))
    crashed = folder + ".crashed"
    ini = os.path.join(folder, "virtuoso.ini")
    with open(ini, "w") as f:
        f.write("[Database]\nDatabaseFile = v.db\nErrorLogFile = v.log\nLockFile = v.lck\nTransactionFile = v.trx\n"
                "xa_persistent_file = v.pxa\n[TempDatabase]\nDatabaseFile = v.tmp\nTransactionFile = v.ttr\n"
                "[Parameters]\nServerPort = 127.0.0.1:11111\nCheckpointInterval = 0\nNumberOfBuffers = 100000\nMaxDirtyBuffers = 75000\n")
    isql = [client, "127.0.0.1:11111", "dba", "dba", "VERBOSE=OFF", "BANNER=OFF", "PROMPT=OFF"]

    def start():
        return subprocess.Popen(["virtuoso-t", "-f", "-c", ini], cwd=folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def until(text, right):
        end = time.monotonic() + 600
        while time.monotonic() < end:
            done = subprocess.run([*isql, "EXEC=" + text], capture_output=True, text=True)
            if done.returncode == 0 and right in done.stdout:
                return
            time.sleep(0.01)
        sys.exit("virtuoso does not answer: " + done.stderr)

    try:
        process, rng = start(), random.Random(1)
        until("SELECT 1;", "1")
        script = os.path.join(folder, "insert.sql")
        with open(script, "w") as f:
            f.write("SET AUTOCOMMIT ON;\n")
            for n in range(3000):
                f.write("SPARQL INSERT DATA { GRAPH <urn:g> { %s } };\n" % " ".join(triples(n, 100, rng)))
        subprocess.run([*isql, script], check=True, stdout=subprocess.DEVNULL)
        log = os.path.getsize(os.path.join(folder, "v.trx"))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        os.remove(os.path.join(folder, "v.lck"))
        shutil.copytree(folder, crashed)
        seconds = []
        for _ in range(TURNS):
            # A start makes a checkpoint, so each begins with what the crash left.
            shutil.rmtree(folder)
            shutil.copytree(crashed, folder)
            forget(folder)
            begun = time.monotonic()
            process = start()
            until("SPARQL " + last_title(2999, 19) + ";", "of review 19 of 2999")
            seconds.append(time.monotonic() - begun)
            process.kill()
            process.wait()
        version = re.search(r"[\d.]+", subprocess.run(["virtuoso-t", "-?"], capture_output=True, text=True).stderr or "?")
        print("virtuoso %s: %.1f s (%s), log of %.0f MiB" % (
            version.group() if version else "", statistics.median(seconds), " ".join("%.1f" % s for s in seconds), log / 2**20))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(crashed, ignore_errors=True)


small() if PART == "small" else large()
