"""Writers, readers, uploads, giants, sets of backups, datasets and kills on one server: see soak.sh, which calls it."""

import csv
import gzip
import http.client
import io
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse

SNOWMELT, DATA, SECONDS = sys.argv[1], sys.argv[2], float(sys.argv[3])
LAB = os.path.join(os.path.dirname(SNOWMELT), "snowmelt-lab")
PRODUCTS = os.environ.get("PRODUCTS", "1000")
MEMORY = os.environ.get("MEMORY", "256MiB")
BACKUPS = os.environ.get("BACKUPS", "on") == "on"
SEED = int(os.environ.get("SNOWMELT_SEED", time.time_ns() % 1_000_000))
HERE = os.path.join(DATA, "soak-%d" % os.getpid())
ALL = os.path.join(HERE, "all")
DB = os.path.join(ALL, "main")
COPIES = os.path.join(HERE, "copies")
WRITERS, READERS, GRAPHS = 4, 4, 4
# Numbers that a writer keeps; older ones it deletes.
KEPT = 200
GRAPH_TRIPLES = 20_000
# A document that is spooled to a file, and an update that is spilled to the journal.
UPLOAD_TRIPLES, GIANT_TRIPLES = 100_000, 400_000
# Copies of a set before it begins anew.
PARTS = 6
BEYOND_BUDGET = 128 << 20
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong("%s: %s" % (" ".join(command), done.stderr.strip()))
    return done.stdout


class Wrong(Exception):
    """A promise that was broken."""


class Refused(Exception):
    """A status that is no success."""


class Server:
    """The process; clients wait while it is being started again."""

    def __init__(self):
        self.lives, self.process, self.address = 0, None, None
        self.up = threading.Event()
        self.start()

    def start(self):
        self.log = open(os.path.join(HERE, "log"), "ab")
        begin = self.log.tell()
        self.process = subprocess.Popen([SNOWMELT, "serve", ALL, "--datasets", "--backup-dir", COPIES, "--listen", "127.0.0.1:0",
                                         "--memory", MEMORY, "--timeout", "60"], stderr=self.log)
        begun = time.monotonic()
        while time.monotonic() - begun < 120:
            if self.process.poll() is not None:
                raise Wrong("the server ended with %s, see %s/log" % (self.process.returncode, HERE))
            with open(self.log.name, "rb") as said:
                said.seek(begin)
                address = re.search(rb"serving .* at http://([0-9.]+):([0-9]+)/", said.read())
            if address:
                self.address = (address[1].decode(), int(address[2]))
                self.lives += 1
                self.up.set()
                return time.monotonic() - begun
            time.sleep(0.002)
        raise Wrong("the server does not start in two minutes")

    def kill(self):
        self.up.clear()
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        return self.start()

    def resident(self):
        for line in open("/proc/%d/status" % self.process.pid):
            if line.startswith("VmRSS"):
                return int(line.split()[1]) << 10

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))


class Client:
    """A connection that is made anew after the server was."""

    def __init__(self, soak):
        self.soak, self.connection, self.life = soak, None, None

    def ask(self, kind, method, path, body=None, content="application/sparql-update", accept="text/csv", base="/main", coding=None):
        """The answer; None when the server went away meanwhile. A body may be pieces, which are sent in chunks; one that ends
        with `None` is cut off there, and the connection with it."""
        self.soak.server.up.wait()
        life = self.soak.server.lives
        begun = time.monotonic()
        try:
            if self.connection is None or self.life != life:
                self.life = life
                self.connection = http.client.HTTPConnection(*self.soak.server.address, timeout=120)
                self.connection.connect()
                self.connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            headers = {"Content-Type": content, "Accept": accept, **({"Content-Encoding": coding} if coding else {})}
            if not hasattr(body, "__next__"):
                self.connection.request(method, base + path, body, headers)
            elif not self.send(method, base + path, headers, body):
                return None
            answer = self.connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            if self.soak.server.up.is_set() and self.soak.server.lives == life and not self.soak.killing:
                raise Wrong("%s: the connection broke though nobody killed the server: %r" % (kind, error))
            return None
        self.soak.took(kind, time.monotonic() - begun)
        if answer.status >= 400:
            raise Refused("%s: %d %s" % (kind, answer.status, text[:300]))
        return text.decode()

    def send(self, method, path, headers, pieces):
        """True when the body was sent whole."""
        self.connection.putrequest(method, path)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            self.connection.putheader(name, value)
        self.connection.endheaders()
        for piece in pieces:
            if piece is None:
                self.connection.close()
                self.connection = None
                return False
            try:
                self.connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            except BrokenPipeError:
                # A refusal comes before the end.
                return True
        self.connection.send(b"0\r\n\r\n")
        return True

    def rows(self, kind, query):
        text = self.ask(kind, "POST", "/query", query, "application/sparql-query")
        return None if text is None else list(csv.reader(io.StringIO(text)))[1:]


class Soak:
    def __init__(self):
        self.over, self.killing = threading.Event(), False
        self.wrong, self.times, self.lock = [], {}, threading.Lock()
        self.acknowledged = [0] * WRITERS
        self.server = None

    def took(self, kind, seconds):
        with self.lock:
            self.times.setdefault(kind, []).append(seconds)

    def thread(self, work, *args):
        def guarded():
            try:
                while not self.over.is_set():
                    work(*args)
            except Exception as error:  # noqa: every end of a thread is told
                self.wrong.append("%s%s: %s" % (work.__name__, args[:1], error))
                self.over.set()
        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        return thread

    def writer(self, number, client):
        """Moves `current` on, adds a number with a text, and deletes the oldest."""
        n = self.acknowledged[number] + 1
        text = ("DELETE DATA { <urn:w%d> <urn:current> %d } ; INSERT DATA { <urn:w%d> <urn:current> %d ; <urn:done> %d . "
                "<urn:w%d/%d> <urn:says> \"writer %d says %d in so many words that they need a place of their own\" }"
                % (number, n - 1, number, n, n, number, n, number, n))
        if n > KEPT:
            text += " ; DELETE DATA { <urn:w%d> <urn:done> %d } ; DELETE WHERE { <urn:w%d/%d> ?p ?o }" % (
                number, n - KEPT, number, n - KEPT)
        if client.ask("commit", "POST", "/update", text) is not None:
            self.acknowledged[number] = n
        else:
            self.settle(number, client)

    def settle(self, number, client):
        """After a kill: the last acknowledged commit is there, or the one after it; nothing else is."""
        rows = None
        while rows is None:
            known = self.acknowledged[number]
            rows = client.rows("first", "SELECT ?c (COUNT(?d) AS ?n) (MAX(?d) AS ?m) { <urn:w%d> <urn:current> ?c ; <urn:done> ?d } "
                                        "GROUP BY ?c" % number)
        got = [int(x) for x in rows[0]] if rows else [0, 0, 0]
        if len(rows) > 1 or got[0] not in (known, known + 1) or got[2] != got[0] or got[1] != min(got[0], KEPT):
            raise Wrong("writer %d: %d acknowledged, found %s" % (number, known, rows))
        self.acknowledged[number] = got[0]

    def reader(self, number, client, draw):
        """Writers' states and products of the benchmark."""
        choice = draw.randrange(3)
        if choice == 0:
            w = draw.randrange(WRITERS)
            known = self.acknowledged[w]
            rows = client.rows("lookup", "SELECT ?c (COUNT(?d) AS ?n) (MAX(?d) AS ?m) { <urn:w%d> <urn:current> ?c ; <urn:done> ?d } "
                                         "GROUP BY ?c" % w)
            if rows is not None and known > 0:
                got = [int(x) for x in rows[0]] if len(rows) == 1 else rows
                if len(rows) != 1 or got[0] < known or got[0] != got[2] or got[1] != min(got[0], KEPT):
                    raise Wrong("reader %d: %d acknowledged by writer %d, found %s" % (number, known, w, rows))
        elif choice == 1:
            client.rows("star", "SELECT ?l ?p ?v { ?o <http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/product> ?p ; "
                                "<http://www4.wiwiss.fu-berlin.de/bizer/bsbm/v01/vocabulary/vendor> ?v . "
                                "?p <http://www.w3.org/2000/01/rdf-schema#label> ?l } OFFSET %d LIMIT 20" % draw.randrange(2000))
        else:
            g = draw.randrange(GRAPHS)
            rows = client.rows("count", "SELECT (COUNT(*) AS ?n) { GRAPH <urn:graph%d> { ?s ?p ?o } }" % g)
            if rows is not None and int(rows[0][0]) not in (0, GRAPH_TRIPLES):
                raise Wrong("graph %d has %s triples, a part of what was put" % (g, rows[0][0]))

    def loader(self, client, draw):
        """Puts graphs in place of older ones, and deletes them."""
        g, salt = draw.randrange(GRAPHS), draw.randrange(1000)
        path = "/graphs?graph=" + urllib.parse.quote("urn:graph%d" % g)
        if draw.randrange(3) == 0:
            try:
                client.ask("delete", "DELETE", path)
            except Refused as error:
                if ": 404" not in str(error):
                    raise
        else:
            lines = ("<urn:g%d/%d> <urn:p%d> \"value %d of round %d\" .\n" % (g, i // 8, i % 8, i, salt) for i in range(GRAPH_TRIPLES))
            client.ask("put", "PUT", path, "".join(lines).encode(), "application/n-triples")
        self.over.wait(SECONDS / 400 + draw.random() * 2)

    def triples_of(self, client, graph):
        rows = client.rows("count", "SELECT (COUNT(*) AS ?n) { GRAPH <%s> { ?s ?p ?o } }" % graph)
        return None if rows is None else int(rows[0][0])

    def whole_or_none(self, client, graph, before, whole):
        """The graph has what it had, or all that was sent; answers how much."""
        found = self.triples_of(client, graph)
        if found is not None and found not in (before, whole):
            raise Wrong("<%s> has %d triples, neither %s nor %d" % (graph, found, before, whole))
        return found

    def uploads(self, client, draw):
        """Puts documents that are spooled, whole and packed, and cuts some off."""
        before = self.triples_of(client, "urn:upload")
        cut_off, packed = draw.randrange(3) == 0, draw.randrange(2) == 0
        count = UPLOAD_TRIPLES + draw.randrange(2)
        lines = "".join("<urn:u%d> <urn:p%d> \"%d, a value that is uploaded\" .\n" % (i // 8, i % 8, i) for i in range(count)).encode()
        text = gzip.compress(lines, 1) if packed else lines
        pieces = [text[i:i + 65536] for i in range(0, len(text), 65536)]
        if cut_off:
            pieces = pieces[:draw.randrange(1, len(pieces))] + [None]
        done = client.ask("upload", "PUT", "/graphs?graph=urn:upload", iter(pieces), "application/n-triples", coding="gzip" if packed else None)
        if done is not None and cut_off:
            raise Wrong("half an upload was taken")
        if before is not None:
            self.whole_or_none(client, "urn:upload", before, count)
        self.over.wait(SECONDS / 200 + draw.random() * 3)

    def giants(self, client, draw):
        """Updates that are larger than the budget's share for changes; two of three are cut off."""
        before = self.triples_of(client, "urn:giant")
        cut_off = draw.randrange(3) > 0
        sent = draw.randrange(1, GIANT_TRIPLES) if cut_off else GIANT_TRIPLES

        def pieces():
            yield b"INSERT DATA { GRAPH <urn:giant> {\n"
            for begin in range(0, sent, 1000):
                yield "".join("<urn:g%d> <urn:p%d> \"%d is a value of a giant\" .\n" % (i // 8, i % 8, i)
                              for i in range(begin, min(begin + 1000, sent))).encode()
            yield None if cut_off else b"} }"

        try:
            done = client.ask("giant", "POST", "/update", pieces())
        except Refused as error:
            # It may come to its limits of time and memory where the machine is slow.
            if not any(status in str(error) for status in (": 503", ": 504", ": 408", ": 413")):
                raise
            done = None
        if done is not None and cut_off:
            raise Wrong("half an update was taken")
        if before is not None and self.whole_or_none(client, "urn:giant", before, GIANT_TRIPLES) == GIANT_TRIPLES:
            client.ask("clear", "POST", "/update", "DROP GRAPH <urn:giant>")
        self.over.wait(SECONDS / 100 + draw.random() * 5)

    def datasets(self, client, draw):
        """Databases beside it: made, filled, renamed, dropped."""
        name = "beside%d" % draw.randrange(3)
        for method, path in (("PUT", name), ("POST", "%s?rename=%s-then" % (name, name)), ("DELETE", name + "-then"), ("DELETE", name)):
            try:
                client.ask("dataset", method, "/datasets/" + path, base="")
                if method == "PUT":
                    client.ask("fill", "POST", "/update", "INSERT DATA { <urn:a> <urn:b> %s }" % ", ".join(map(str, range(2000))), base="/" + name)
            except Refused as error:
                # What a kill left from before; one that requests use; no memory for one more.
                if not any(status in str(error) for status in (": 404", ": 409", ": 503")):
                    raise
        self.over.wait(SECONDS / 200 + draw.random() * 3)

    def sets(self, client, draw):
        """A set of backups that grows; a state of it is restored and checked."""
        self.over.wait(SECONDS / 120 + draw.random() * 5)
        target, copy = os.path.join(COPIES, "set"), os.path.join(HERE, "restored")
        if client.ask("set", "POST", "/datasets/main?backup=set&incremental", base="") is None:
            return
        shutil.rmtree(copy, ignore_errors=True)
        run(SNOWMELT, "restore", target, copy)
        run(SNOWMELT, "check", copy)
        shutil.rmtree(copy)
        if len(os.listdir(target)) > PARTS:
            shutil.rmtree(target)

    def backups(self):
        """A copy beside the running server, which is checked."""
        self.over.wait(max(10, SECONDS / 40))
        self.server.up.wait()
        life, copy = self.server.lives, os.path.join(HERE, "copy")
        shutil.rmtree(copy, ignore_errors=True)
        begun = time.monotonic()
        try:
            run(SNOWMELT, "backup", DB, copy)
            self.took("backup", time.monotonic() - begun)
            run(SNOWMELT, "check", copy)
        except Wrong:
            if self.server.lives == life and not self.killing and not self.over.is_set():
                raise
        shutil.rmtree(copy, ignore_errors=True)

    def sample(self):
        size = sum(os.stat(os.path.join(DB, name)).st_blocks * 512 for name in os.listdir(DB))
        return {"at": time.monotonic(), "resident": self.server.resident(), "descriptors": self.server.descriptors(),
                "bytes": size, "life": self.server.lives}

    def run(self):
        draw = random.Random(SEED)
        data = os.path.join(HERE, "data.nt")
        run(LAB, "bsbm", "generate", "--products", PRODUCTS, "-o", data)
        os.makedirs(ALL)
        os.makedirs(COPIES)
        run(SNOWMELT, "load", DB, data, "--memory", "1GiB")
        # The memory is parted between the datasets there are, so that there is some for others.
        with open(data, "w") as one:
            one.write("<urn:a> <urn:b> <urn:c> .\n")
        for name in "second", "third":
            run(SNOWMELT, "load", os.path.join(ALL, name), data)
        os.remove(data)
        self.server = Server()
        for w in range(WRITERS):
            self.thread(self.writer, w, Client(self))
        for r in range(READERS):
            self.thread(self.reader, r, Client(self), random.Random(draw.random()))
        for work in self.loader, self.uploads, self.giants, self.datasets:
            self.thread(work, Client(self), random.Random(draw.random()))
        if BACKUPS:
            self.thread(self.backups)
            self.thread(self.sets, Client(self), random.Random(draw.random()))
        begun = time.monotonic()
        next_kill, samples, starts = begun + SECONDS / 30, [], []
        while time.monotonic() - begun < SECONDS and not self.over.is_set():
            time.sleep(min(10, SECONDS / 30))
            if time.monotonic() > next_kill and time.monotonic() - begun < SECONDS * 2 / 3:
                self.killing = True
                starts.append(self.server.kill())
                time.sleep(1)
                self.killing = False
                next_kill = time.monotonic() + draw.uniform(0.5, 1.5) * max(8, SECONDS / 40)
            samples.append(self.sample())
            s = samples[-1]
            print("%6.0f s: %4d MiB resident, %3d descriptors, %5d MiB on disk, %d commits, life %d"
                  % (s["at"] - begun, s["resident"] >> 20, s["descriptors"], s["bytes"] >> 20, sum(self.acknowledged), s["life"]),
                  flush=True)
        self.over.set()
        time.sleep(3)
        # what is still asked finds no server any more
        self.killing = True
        self.server.process.send_signal(signal.SIGTERM)
        if self.server.process.wait() != 0:
            self.wrong.append("the server ended with %d" % self.server.process.returncode)
        run(SNOWMELT, "check", DB)
        self.judge(samples, starts)

    def judge(self, samples, starts):
        budget = parse_size(MEMORY)
        highest = max(s["resident"] for s in samples)
        if highest > budget + BEYOND_BUDGET:
            self.wrong.append("%d MiB resident, of %d and 128" % (highest >> 20, budget >> 20))
        last_life = [s for s in samples if s["life"] == samples[-1]["life"]]
        third = max(1, len(last_life) // 3)
        # The first third of a life fills the pool.
        early, late = last_life[third:2 * third] or last_life, last_life[-third:]
        for what, slack in (("resident", 32 << 20), ("descriptors", 8), ("bytes", 96 << 20)):
            a, b = (statistics.median(s[what] for s in part) for part in (early, late))
            print("%s: %.0f in the middle of the last life, %.0f at its end" % (what, a, b))
            if b > a * 1.05 + slack:
                self.wrong.append("%s grow: %.0f, then %.0f" % (what, a, b))
        for kind, times in sorted(self.times.items()):
            times.sort()
            p50, p99 = times[len(times) // 2], times[min(len(times) - 1, len(times) * 99 // 100)]
            print("%-8s %8d times: p50 %8.2f ms, p99 %8.2f ms, longest %8.2f ms" % (kind, len(times), p50 * 1e3, p99 * 1e3, times[-1] * 1e3))
        print("seed %d, %d commits, %d kills%s" % (SEED, sum(self.acknowledged), len(starts), ", longest restart %.2f s" % max(starts) if starts else ""))


def parse_size(text):
    return next(int(text[:-3]) * of for unit, of in UNITS.items() if text.endswith(unit))


def main():
    os.makedirs(HERE)
    soak = Soak()
    try:
        soak.run()
    except Wrong as error:
        soak.wrong.append(str(error))
    finally:
        if soak.server is not None and soak.server.process.poll() is None:
            soak.server.process.kill()
            soak.server.process.wait()
    if soak.wrong:
        print("\n".join("WRONG: " + error for error in soak.wrong))
        print("the database and the server's log are left in %s" % HERE)
        sys.exit(1)
    shutil.rmtree(HERE)
    print("nothing wrong")


main()
