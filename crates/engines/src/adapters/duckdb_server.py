"""DuckDB behind HTTP: POST /sql takes statements and answers the last one's rows as psql does
unaligned, fields with | between them. POST /cancel ends what the same client waits for.

    duckdb_server.py DATABASE PORT MEMORY_MIB THREADS
    duckdb_server.py ask PORT STATEMENT
    duckdb_server.py run PORT FILE
    duckdb_server.py session PORT MARK      statements from the input, each ended by a line MARK
"""
import http.client
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def post(connection, path, text):
    connection.request("POST", path, body=text.encode(), headers={"Client": str(os.getpid())})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def connect(port):
    return http.client.HTTPConnection("127.0.0.1", int(port))


def ask(port, text):
    status, answer = post(connect(port), "/sql", text)
    if status != 200:
        sys.exit(answer)
    sys.stdout.write(answer)


def run(port, path):
    with open(path) as file:
        ask(port, file.read())


def session(port, mark):
    def cancel(*_):
        post(connect(port), "/cancel", "")
        os._exit(2)

    signal.signal(signal.SIGINT, cancel)
    connection, lines = connect(port), []
    for line in sys.stdin:
        if line.rstrip("\n") != mark:
            lines.append(line)
            continue
        status, answer = post(connection, "/sql", "".join(lines))
        lines.clear()
        if status == 200:
            sys.stdout.write(f"{answer}{mark} false\n")
        else:
            sys.stdout.write(f"{mark} true {' '.join(answer.split())}\n")
        sys.stdout.flush()


def serve(path, port, memory_mib, threads):
    import duckdb

    database = duckdb.connect(path, config={"memory_limit": f"{memory_mib}MiB", "threads": int(threads)})
    waiting = {}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(200, b"ready\n")

        def do_POST(self):
            client = self.headers["Client"]
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if self.path == "/cancel":
                cursor = waiting.get(client)
                if cursor:
                    cursor.interrupt()
                return self.answer(200, b"")
            cursor = waiting[client] = database.cursor()
            try:
                rows = cursor.execute(text).fetchall()
            except Exception as error:
                return self.answer(400, f"{error}\n".encode())
            finally:
                waiting.pop(client, None)
            fields = (("" if field is None else str(field) for field in row) for row in rows)
            self.answer(200, "".join("|".join(row) + "\n" for row in fields).encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        database.close()


if sys.argv[1] in ("ask", "run", "session"):
    globals()[sys.argv[1]](*sys.argv[2:])
else:
    serve(*sys.argv[1:])
