"""The engines: found, loaded, started, asked and stopped.

How an engine is started and loaded is said by its file in crates/engines/src/adapters, which the
laboratory uses, too. Fluree and DuckDB are asked otherwise: by their workers, without HTTP between.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import select
import time
import tomllib
import urllib.request

import answers
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
ADAPTERS = os.path.join(HERE, "../../crates/engines/src/adapters")


class Absent(Exception):
    """The engine is not there; the text says how it is installed."""


def size_in_bytes(text):
    number, unit = re.fullmatch(r"(\d+)\s*([KMG]?)(?:iB)?", text).groups()
    return int(number) * {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}[unit]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def run(words, log, **more):
    with open(log, "ab") as out:
        done = subprocess.run(words, stdout=out, stderr=out, stdin=subprocess.DEVNULL, **more)
    if done.returncode != 0:
        raise RuntimeError("%s: exit code %d, see %s" % (" ".join(words), done.returncode, log))


class Process:
    """What a process and its threads have used."""

    def __init__(self, started):
        self.started, self.pid = started, started.pid

    def processor_ms(self):
        # The clock of another process's processor time, as clock_getcpuclockid makes it.
        return time.clock_gettime((~self.pid << 3) | 2) * 1e3

    def forget_peak(self):
        with open("/proc/%d/clear_refs" % self.pid, "w") as refs:
            refs.write("5")

    def peak_bytes(self):
        """The most that was resident since forget_peak."""
        with open("/proc/%d/status" % self.pid) as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) * 1024

    def ended(self):
        return self.started.poll() is not None

    def stop(self, command=None):
        if not self.ended():
            if command:
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
            else:
                self.started.send_signal(signal.SIGTERM)
            try:
                self.started.wait(30)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self):
        self.started.kill()
        self.started.wait()


class Engine:
    """An engine with an endpoint, as its adapter describes it, with its data in a folder."""

    def __init__(self, name, folder, settings):
        with open(os.path.join(ADAPTERS, name + ".toml"), "rb") as file:
            self.adapter = tomllib.load(file)
        self.name, self.title, self.folder = name, self.adapter["title"], folder
        self.settings, self.process = settings, None
        self.log = os.path.join(folder, "log")
        self.values = {
            "folder": folder, "engines": settings["engines"], "snowmelt": settings["snowmelt"], "name": name,
            "threads": str(settings["threads"]), "parts": os.path.join(folder, "parts"),
        }

    def fill(self, text):
        return re.sub(r"\{([a-z][a-z0-9-]*)\}", lambda m: self.values.get(m.group(1), m.group(0)), text)

    def words(self, words):
        return [self.fill(word) for word in words]

    def find(self):
        """Its version; Absent if it is not there."""
        find = self.adapter.get("find", {})
        install = "; ".join(self.words(self.adapter["install"]))
        try:
            if any(not shutil.which(self.fill(p)) and not os.path.exists(self.fill(p)) for p in find.get("needs", [])):
                raise Absent(install)
            told = subprocess.run(self.words(find["version"]), capture_output=True, text=True, timeout=60)
        except OSError:
            raise Absent(install) from None
        start = find.get("version-line", "")
        lines = [line.strip() for line in (told.stdout + told.stderr).splitlines() if line.startswith(start)]
        if told.returncode != 0 and not start or not lines:
            raise Absent(install)
        return lines[0]

    def prepare(self, memory):
        """Sets memory and ports, and writes the files that the engine wants."""
        os.makedirs(self.folder, exist_ok=True)
        amount = size_in_bytes(memory)
        wholes = {"memory": amount, "threads": self.settings["threads"]}
        self.values.update(memory=str(amount), port=str(free_port()))
        self.values["second-port"] = str(free_port())
        for name, part in self.adapter.get("numbers", {}).items():
            self.values[name] = str(max(1, int(wholes[part["of"]] * part["share"] / part["unit"])))
        for file in self.adapter.get("file", []):
            path = self.fill(file["path"])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if "text" in file:
                with open(path, "w") as out:
                    out.write(self.fill(file["text"]))

    def loaded(self, data):
        """What is known of the load of this very data, or None."""
        try:
            with open(os.path.join(self.folder, "loaded.json")) as file:
                known = json.load(file)
        except FileNotFoundError:
            return None
        return known if known["source_bytes"] == os.path.getsize(data) else None

    def load(self, data):
        """Loads the data anew. Returns seconds and bytes on the disk."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.prepare(self.settings["load_memory"])
        self.values["data"] = data
        begun = time.monotonic()
        self.load_steps(data)
        known = {"seconds": time.monotonic() - begun, "bytes": bytes_below(self.fill(self.adapter["data"])),
                 "source_bytes": os.path.getsize(data)}
        with open(os.path.join(self.folder, "loaded.json"), "w") as out:
            json.dump(known, out)
        return known

    def load_steps(self, data):
        load = self.adapter["load"]
        if any("{parts}" in word for step in load["steps"] for word in step["run"]):
            os.makedirs(self.values["parts"], exist_ok=True)
            run(["split", "-n", "l/%s" % self.values["threads"], "--additional-suffix=.nt", data,
                 self.values["parts"] + "/"], self.log)
        if load["server"] == "running":
            self.launch()
        try:
            for step in load["steps"]:
                sessions = int(self.fill(step.get("sessions", "1")))
                with open(self.log, "ab") as out:
                    running = [subprocess.Popen(self.words(step["run"]), stdout=out, stderr=out) for _ in range(sessions)]
                    if any([one.wait() for one in running]):
                        raise RuntimeError("%s: a load command failed, see %s" % (self.title, self.log))
        finally:
            self.stop()
            shutil.rmtree(self.values["parts"], ignore_errors=True)

    def start(self):
        self.prepare(self.settings["memory"] if self.name == "snowmelt" else self.settings["rival_memory"])
        self.launch()

    def launch(self):
        with open(self.log, "ab") as out:
            self.process = Process(subprocess.Popen(
                self.words(self.adapter["start"]), stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=self.folder))
        deadline = time.monotonic() + self.adapter["ready"].get("seconds", 120)
        while not self.ready():
            if self.process.ended() or time.monotonic() > deadline:
                raise RuntimeError("%s does not start, see %s" % (self.title, self.log))
            time.sleep(0.05)

    def ready(self):
        ready = self.adapter["ready"]
        if "command" in ready and subprocess.run(self.words(ready["command"]), capture_output=True).returncode:
            return False
        try:
            with urllib.request.urlopen(self.fill(ready["http"]), timeout=30) as answer:
                return answer.status == 200
        except OSError:
            return False

    def stop(self):
        if self.process:
            command = self.adapter.get("stop", {}).get("command")
            self.process.stop(command and self.words(command))
            self.process = None

    def again(self):
        """A new process in place of one that is busy or dead."""
        self.process.kill()
        self.start()

    def forget_warm_list(self):
        """Has the next start know nothing of what the one before has read."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(os.path.join(self.fill(self.adapter["data"]), "warm"))

    def asked(self, family):
        """What it is asked in a family's place: itself, or None."""
        return family

    def ask(self, text, seconds):
        """Milliseconds, milliseconds of processor time, and what `rows` makes rows of."""
        before = self.process.processor_ms()
        took, body = wire.ask(self.fill(self.adapter["endpoint"]), text, seconds, self.adapter.get("default-graph"))
        return took, self.process.processor_ms() - before, body

    def rows(self, answer):
        return answers.of_json(answer)


class Worked(Engine):
    """An engine in a process of ours that calls it, with questions and answers by pipes."""

    program = database = None
    more = ()

    def worker(self, step, *words):
        words = [step, self.fill(self.database), *words, *map(self.fill, self.more)]
        return [self.fill("{engines}/python/bin/python"), os.path.join(HERE, self.program), *words]

    def load_steps(self, data):
        run(self.worker("load", data), self.log)

    def launch(self):
        with open(self.log, "ab") as out:
            self.process = Process(subprocess.Popen(
                self.worker("serve"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, bufsize=0))
        self.answer(300)

    def answer(self, seconds):
        pipe, deadline = self.process.started.stdout, time.monotonic() + seconds

        def bytes_of(size):
            got = bytearray()
            while len(got) < size:
                if not select.select([pipe], [], [], max(0, deadline - time.monotonic()))[0]:
                    raise wire.TooLate()
                some = os.read(pipe.fileno(), min(size - len(got), 1 << 20))
                if not some:
                    raise wire.Refused("its process has ended")
                got += some
            return bytes(got)

        return bytes_of(struct.unpack("<Q", bytes_of(8))[0])

    def ask(self, text, seconds):
        query = text.encode()
        self.process.started.stdin.write(struct.pack("<Q", len(query)) + query)
        answer = json.loads(self.answer(seconds))
        if "error" in answer:
            raise wire.Refused(answer["error"])
        return answer["ms"], answer["cpu_ms"], answer

    def rows(self, answer):
        if "asked" in answer:
            return [[str(answer["asked"]).lower()]]
        order = sorted(range(len(answer["names"])), key=answer["names"].__getitem__)
        return [["" if row[i] is None else answers.cell(*row[i]) for i in order] for row in answer["rows"]]


class Fluree(Worked):
    program, database = "fluree_worker.py", "{folder}/db"


class DuckDb(Worked):
    """DuckDB, on numbers in place of terms. It is asked the families that have a twin in SQL."""

    program, database, more = "duckdb_worker.py", "{folder}/db/data.duckdb", ("{memory-mib}",)

    def __init__(self, name, folder, settings):
        super().__init__(name, folder, settings)
        self.twins = {}

    def asked(self, family):
        return self.twins.get(family.name)


KINDS = {"fluree": Fluree, "duckdb": DuckDb}


def bytes_below(path):
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(path) for f in files)
