"""Compares two binaries in alternating pairs, and their counts: see ab.sh, which calls it."""

import http.client
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

OLD, NEW, PAIRS, DATA = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
PRODUCTS = os.environ.get("PRODUCTS", "2785")
MIXES = int(os.environ.get("MIXES", "300"))
COMMITS = int(os.environ.get("COMMITS", "1500"))
TURN_COMMITS = 50
CELL_PRODUCTS, CELL_MIXES = os.environ.get("CELLS", "300:20").split(":")
# Four clients on two processors wait for each other, which one client never does.
CLIENTS = {"explore": 1, "explore by 4": 4}
SPEEDS = [("load", "triples/s"), *((what, "QMpH") for what in CLIENTS), ("commits", "commits/s")]
LEAST_SPEED = 0.95
MOST_GROWTH = 0.03
HERE = os.path.join(DATA, "ab-runs-%d" % os.getpid())


def driver(binary):
    """The program with the benchmark's driver: it lies beside, or is the same."""
    lab = os.path.join(os.path.dirname(binary), "snowmelt-lab")
    return lab if os.path.exists(lab) else binary


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command), done.stderr))
    return done


class Side:
    """A binary with its databases and figures."""

    def __init__(self, name, binary):
        self.name, self.binary = name, binary
        self.dir = os.path.join(HERE, name)
        os.makedirs(self.dir)
        self.speeds = {what: [] for what, _ in SPEEDS}
        self.counts = {}

    def path(self, name):
        return os.path.join(self.dir, name)

    def load(self, data, db):
        shutil.rmtree(db, ignore_errors=True)
        os.sync()
        said = run(self.binary, "load", db, data, "--memory", "1GiB").stderr
        triples, seconds = re.search(r"([\d,]+) triples in ([\d.]+) s", said).groups()
        return int(triples.replace(",", "")) / float(seconds)

    def explore(self, db, clients):
        mixes = MIXES * clients
        said = run(driver(self.binary), "bsbm", "run", db, "--products", PRODUCTS, "--mixes", str(mixes), "--warmup",
                   str(mixes // 3), "--clients", str(clients), "--memory", "1GiB", "--format", "json").stdout
        return json.loads(said)["qmph"]

    def serve(self, db):
        """Starts a server that takes commits."""
        announcement = os.path.join(db, "server")
        if os.path.exists(announcement):
            os.remove(announcement)
        self.server = subprocess.Popen([self.binary, "serve", db, "--listen", "127.0.0.1:0", "--memory", "256MiB"],
                                       stderr=subprocess.DEVNULL)
        self.connection = connect(self.server, announcement)
        self.journal = self.journal_stats()

    def ask(self, method, path, body=None):
        self.connection.request(method, path, body, {"Content-Type": "application/sparql-update"})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            sys.exit("%s: %s %s" % (self.name, answer.status, text))
        return text

    def journal_stats(self):
        return json.loads(self.ask("GET", "/stats"))["journal"]

    def commit(self, numbers):
        """Seconds of a commit of one quad for each number, one after the other."""
        begun = time.monotonic()
        for i in numbers:
            self.ask("POST", "/update", "INSERT DATA { <urn:s%d> <urn:p%d> %d }" % (i % 97, i % 7, i))
        return time.monotonic() - begun

    def stop(self):
        self.server.terminate()
        self.server.wait()

    def virtual(self, data):
        """Pages, requests, bytes and seconds of every setting on modelled devices."""
        db = self.path("cells")
        self.load(data, db)
        said = run(driver(self.binary), "bsbm", "run", db, "--products", CELL_PRODUCTS, "--mixes", CELL_MIXES, "--ablate",
                   "--format", "json").stdout
        for cell in json.loads(said)["meters"]["ablation"]:
            name = " ".join(str(cell[key]) for key in ("device", "pool_percent", "queue", "clients", "load", "read_ahead"))
            for key in "reads", "requests", "bytes", "seconds":
                self.counts["%s: %s" % (name, key)] = cell["figures"][key]
            self.counts["%s: digest" % name] = cell["figures"]["digest"]


def connect(server, announcement):
    for _ in range(30_000):
        if server.poll() is not None:
            sys.exit("the server ended with %s" % server.returncode)
        try:
            host, port = open(announcement).read().strip().rsplit(":", 1)
            connection = http.client.HTTPConnection(host, int(port), timeout=60)
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except (OSError, ValueError):
            time.sleep(0.002)
    sys.exit("the server does not start")


def stripes(db):
    return sum(os.path.getsize(os.path.join(db, f)) for f in os.listdir(db) if f.startswith("stripe-") and "profile" not in f)


def commits(order):
    """Commits per second of one client over HTTP, and what the journal took. Both servers run, and take turns of a few
    commits: the time of a sync changes from second to second by more than what is to be found."""
    seconds = {side: 0.0 for side in order}
    try:
        for side in order:
            shutil.rmtree(side.path("small"), ignore_errors=True)
            shutil.copytree(side.path("empty"), side.path("small"))
            side.serve(side.path("small"))
        for turn, first in enumerate(range(0, COMMITS, TURN_COMMITS)):
            for side in order if turn % 2 == 0 else order[::-1]:
                seconds[side] += side.commit(range(first, min(first + TURN_COMMITS, COMMITS)))
        for side in order:
            after = side.journal_stats()
            for key in "appended_bytes", "syncs":
                side.counts["journal %s per 1000 commits" % key] = (after[key] - side.journal[key]) * 1000 / COMMITS
            side.speeds["commits"].append(COMMITS / seconds[side])
    finally:
        for side in order:
            side.stop()


def pair(sides, data, number):
    order = sides if number % 2 == 0 else sides[::-1]
    for what in "load", *CLIENTS:
        for side in order:
            db = side.path("shop")
            if what == "load":
                rate = side.load(data, db)
                side.counts["bytes of the database"] = stripes(db)
            else:
                rate = side.explore(db, CLIENTS[what])
            side.speeds[what].append(rate)
    commits(order)
    ratios = {what: sides[1].speeds[what][-1] / sides[0].speeds[what][-1] for what in sides[0].speeds}
    print("pair %d: %s" % (number + 1, ", ".join("%s %.3f" % of for of in ratios.items())), flush=True)


def judge_speeds(old, new):
    good = True
    for what, unit in SPEEDS:
        ratios = [b / a for a, b in zip(old.speeds[what], new.speeds[what])]
        median = statistics.median(ratios)
        holds = median >= LEAST_SPEED
        good &= holds
        print("%-12s old %9.0f, new %9.0f %s; new/old median %.3f (%.3f to %.3f): %s"
              % (what, statistics.median(old.speeds[what]), statistics.median(new.speeds[what]), unit, median,
                 min(ratios), max(ratios), "holds" if holds else "BELOW %.2f" % LEAST_SPEED))
    return good


def judge_counts(old, new):
    """Sums of counts within 3 %, and the answers' digests equal.

    A sum is over the read-ahead settings and queues of one device, pool, number of clients and load, and another one over everything. Alone a sum of
    pages, requests or bytes is judged where it does not depend on who waits for whom: with one client, or when the pool holds the database. Sixteen clients
    that drive each other's pages out of a tenth of it read up to a half more or less when one page is read in addition. Seconds are judged over
    everything: on a disk that rotates, one request less may cost a turn."""
    good, sums = True, {}
    for name in sorted(set(old.counts) | set(new.counts)):
        a, b = old.counts.get(name), new.counts.get(name)
        if a is None or b is None:
            good = False
            print("%s: only one of them has it" % name)
            continue
        if name.endswith("digest"):
            if a != b:
                good = False
                print("%s: the answers differ" % name)
            continue
        cell, _, kind = name.rpartition(": ")
        for key in ("all", kind), (group_of(cell), kind):
            total = sums.setdefault(key, [0, 0, 0])
            total[0], total[1], total[2] = total[0] + a, total[1] + b, total[2] + 1
    for (group, kind), (a, b, n) in sorted(sums.items()):
        ratio = b / a if a else (1.0 if not b else float("inf"))
        judged = group == "all" or kind != "seconds" and not group.endswith(CHAOTIC)
        grew = judged and ratio > 1 + MOST_GROWTH
        good &= not grew
        if group == "all" or grew or not judged and abs(ratio - 1) > MOST_GROWTH:
            why = "MORE THAN 3 %" if grew else "holds" if judged else "not judged alone"
            print("%s, %s: %.6g -> %.6g in %d counts, %.4f: %s" % (group, kind, a, b, n, ratio, why))
    return good


# A tenth of the pages for sixteen clients.
CHAOTIC = "10 % 16 clients mixes"


def group_of(cell):
    """Device, pool, clients and load of a cell's name."""
    if not cell:
        return "all"
    device, pool, _, clients, load = cell.split()[:5]
    return "%s %s %% %s clients %s" % (device, pool, clients, load)


def main():
    begun = time.monotonic()
    os.makedirs(HERE)
    try:
        sides = [Side("old", OLD), Side("new", NEW)]
        data, few = os.path.join(HERE, "data.nt"), os.path.join(HERE, "few.nt")
        run(driver(NEW), "bsbm", "generate", "--products", PRODUCTS, "-o", data)
        run(driver(NEW), "bsbm", "generate", "--products", CELL_PRODUCTS, "-o", few)
        print("# %s products, %d mixes, %d commits; virtual time: %s products, %s mixes a cell"
              % (PRODUCTS, MIXES, COMMITS, CELL_PRODUCTS, CELL_MIXES), flush=True)
        for side in sides:
            side.load(few, side.path("empty"))
        for number in range(PAIRS):
            pair(sides, data, number)
        for side in sides:
            side.virtual(few)
        speeds, counts = judge_speeds(*sides), judge_counts(*sides)
        print("%.0f s: speeds %s, counts %s" % (time.monotonic() - begun, "hold" if speeds else "FALL", "hold" if counts else "GROW"))
        sys.exit(0 if speeds and counts else 1)
    finally:
        shutil.rmtree(HERE, ignore_errors=True)


main()
