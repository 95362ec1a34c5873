"""Long work lets other threads run, and Ctrl-C ends it."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import snowmelt

LONG = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z . ?d ?t ?w FILTER(?x + ?y + ?z = ?w + 0.5) }"


@pytest.fixture
def db():
    with snowmelt.Database.in_memory(memory=256 << 20) as db:
        db.load(b"".join(b"<urn:s%d> <urn:n> %d .\n" % (i, i) for i in range(1000)), format="turtle")
        yield db


@pytest.fixture(autouse=True)
def heeded():
    """A shell has its background jobs ignore SIGINT, and what they start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


@pytest.mark.parametrize(
    "work",
    [
        lambda db: list(db.query(LONG)),
        lambda db: db.query(LONG).to_arrow(),
        lambda db: db.update(LONG.replace("SELECT (COUNT(*) AS ?n)", "INSERT { ?a ?p ?y } WHERE")),
        lambda db: db.analyze(LONG),
    ],
    ids=["rows", "arrow", "update", "analyze"],
)
def test_an_interrupt_ends_it_soon(db, work):
    if "arrow" in os.environ.get("PYTEST_CURRENT_TEST", ""):
        pytest.importorskip("pyarrow")
    timer = interrupt_after(0.3)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        work(db)
    timer.join()
    assert time.monotonic() - begun < 5
    assert len(db) == 1000 and db.query("ASK { ?s <urn:n> 7 }")


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, MemoryError])
def test_what_is_no_error_of_a_value_ends_the_query(db, raised):
    def fail(_):
        raise raised("enough")

    text = "SELECT (<urn:f>(?o) AS ?n) { ?s ?p ?o }"
    with pytest.raises(raised):
        list(db.query(text, functions={"urn:f": fail}))
    with pytest.raises(raised):
        db.update(
            "INSERT { ?s <urn:q> ?n } WHERE { ?s ?p ?o BIND(<urn:f>(?o) AS ?n) }", functions={"urn:f": fail}
        )
    assert len(db) == 1000

    def wrong(_):
        raise ValueError("an error of the expression")

    assert [row["n"] for row in db.query(text + " LIMIT 2", functions={"urn:f": wrong})] == [None, None]


def test_waiting_for_a_writer_is_interrupted(db):
    entered, leave = threading.Event(), threading.Event()

    def hold():
        with db.transaction():
            entered.set()
            leave.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(30)
    timer = interrupt_after(0.3)
    with pytest.raises(KeyboardInterrupt):
        with db.transaction():
            pass
    timer.join()
    leave.set()
    holder.join()


def test_a_handler_that_raises_nothing_does_not_end_it(db):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        with pytest.raises(TimeoutError):
            list(db.query(LONG, timeout=1.0))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(seen) >= 3


def test_other_threads_run_meanwhile(db):
    stop, counted = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    with pytest.raises(TimeoutError):
        list(db.query(LONG, timeout=0.5))
    stop.set()
    thread.join()
    assert counted[0] > 20


def test_a_program_is_interrupted_as_by_a_terminal():
    program = f"""
import snowmelt
db = snowmelt.Database.in_memory(memory=256 << 20)
db.load(b"".join(b"<urn:s%d> <urn:n> %d .\\n" % (i, i) for i in range(1000)), format="turtle")
print("ready", flush=True)
list(db.query({LONG!r}))
"""
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.3)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=20)
    assert child.returncode == -signal.SIGINT and "KeyboardInterrupt" in err
