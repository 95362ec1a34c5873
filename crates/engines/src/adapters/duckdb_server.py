"""DuckDB behind HTTP: POST /sql takes statements and answers the last one's rows as CSV.

    duckdb_server.py DATABASE PORT MEMORY_MIB THREADS
    duckdb_server.py ask PORT STATEMENT
"""
import csv
import io
import signal
import sys
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def ask(port, text):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/sql", data=text.encode())
    try:
        with urllib.request.urlopen(request) as answer:
            sys.stdout.write(answer.read().decode())
    except urllib.error.HTTPError as error:
        sys.exit(error.read().decode())


def serve(path, port, memory_mib, threads):
    import duckdb

    database = duckdb.connect(path, config={"memory_limit": f"{memory_mib}MiB", "threads": int(threads)})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status, body):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            self.answer(200, b"ready\n")

        def do_POST(self):
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            try:
                rows = database.cursor().execute(text).fetchall()
            except Exception as error:
                return self.answer(400, f"{error}\n".encode())
            out = io.StringIO()
            csv.writer(out, lineterminator="\n").writerows(rows)
            self.answer(200, out.getvalue().encode())

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


if sys.argv[1] == "ask":
    ask(*sys.argv[2:])
else:
    serve(*sys.argv[1:])
