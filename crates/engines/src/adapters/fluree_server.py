"""Fluree behind HTTP: GET /sparql?query=… answers SPARQL XML, or RDF/XML for graphs.

    fluree_server.py load DATABASE FILE
    fluree_server.py serve DATABASE PORT

The package's `query` turns literals into Python values, which lose their lexical form; the native
call below it keeps the terms, and is what is asked here.
"""
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit
from xml.sax.saxutils import escape, quoteattr

import fluree

LEDGER = "data"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSD = "http://www.w3.org/2001/XMLSchema#"


def term_xml(term):
    if term[0] == "iri":
        return f"<uri>{escape(term[1])}</uri>"
    if term[0] == "bnode":
        return f"<bnode>{escape(term[1])}</bnode>"
    _, text, datatype, language = term
    if language:
        return f"<literal xml:lang={quoteattr(language)}>{escape(text)}</literal>"
    if datatype in (None, XSD + "string"):
        return f"<literal>{escape(text)}</literal>"
    return f"<literal datatype={quoteattr(datatype)}>{escape(text)}</literal>"


def solutions_xml(columns, rows):
    out = ['<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head>']
    out += [f"<variable name={quoteattr(name)}/>" for name in columns]
    out.append("</head><results>")
    for row in rows:
        out.append("<result>")
        for name, term in zip(columns, row):
            if term is not None:
                out.append(f"<binding name={quoteattr(name)}>{term_xml(term)}</binding>")
        out.append("</result>")
    out.append("</results></sparql>")
    return "".join(out)


def boolean_xml(value):
    text = "true" if value else "false"
    return (
        '<?xml version="1.0"?><sparql xmlns="http://www.w3.org/2005/sparql-results#"><head/>'
        f"<boolean>{text}</boolean></sparql>"
    )


class Graph:
    """RDF/XML of a JSON-LD document as the engine writes it: flat nodes, full or prefixed names."""

    def __init__(self, document):
        self.prefixes = {
            name: iri for name, iri in document.get("@context", {}).items() if isinstance(iri, str)
        }
        self.out = [f'<?xml version="1.0"?><rdf:RDF xmlns:rdf="{RDF}">']
        for node in document.get("@graph", []):
            self.node(node)
        self.out.append("</rdf:RDF>")

    def full(self, name):
        prefix, colon, rest = name.partition(":")
        if colon and not rest.startswith("//") and prefix in self.prefixes:
            return self.prefixes[prefix] + rest
        return name

    def reference(self, name, attribute):
        if name.startswith("_:"):
            label = "".join(c if c.isalnum() else "_" for c in name[2:])
            return f'rdf:nodeID="b{label}"'
        return f"rdf:{attribute}={quoteattr(self.full(name))}"

    def node(self, node):
        self.out.append(f"<rdf:Description {self.reference(node['@id'], 'about')}>")
        for key, values in node.items():
            if key == "@id":
                continue
            predicate = RDF + "type" if key == "@type" else self.full(key)
            for value in values if isinstance(values, list) else [values]:
                self.value(predicate, {"@id": value} if key == "@type" else value)
        self.out.append("</rdf:Description>")

    def value(self, predicate, value):
        # The local name begins behind the last character that no XML name can have.
        at = len(predicate)
        while at > 0 and (predicate[at - 1].isalnum() or predicate[at - 1] in "_-."):
            at -= 1
        while at < len(predicate) and not (predicate[at].isalpha() or predicate[at] == "_"):
            at += 1
        tag = f"p:{predicate[at:]}"
        start = f"<{tag} xmlns:p={quoteattr(predicate[:at])}"
        if isinstance(value, dict) and "@id" in value:
            self.out.append(f"{start} {self.reference(value['@id'], 'resource')}/>")
            return
        attribute, text = "", value
        if isinstance(value, dict):
            text = value["@value"]
            if "@language" in value:
                attribute = f" xml:lang={quoteattr(value['@language'])}"
            elif "@type" in value:
                attribute = f" rdf:datatype={quoteattr(self.full(value['@type']))}"
        if not isinstance(text, str):
            kind = "boolean" if isinstance(text, bool) else "integer" if isinstance(text, int) else "double"
            attribute = attribute or f' rdf:datatype="{XSD}{kind}"'
            text = str(text).lower() if isinstance(text, bool) else repr(text)
        self.out.append(f"{start}{attribute}>{escape(text)}</{tag}>")


def answer_xml(answer):
    kind = answer[0]
    if kind == "select":
        return "application/sparql-results+xml", solutions_xml(answer[1], answer[2])
    if kind == "ask":
        return "application/sparql-results+xml", boolean_xml(answer[1])
    return "application/rdf+xml", "".join(Graph(answer[1]).out)


def load(path, source):
    with fluree.connect(path) as connection:
        connection.create(LEDGER, source=source)


def serve(path, port):
    connection = fluree.connect(path, indexing=False)
    ledger = connection.ledger(LEDGER)._id
    native = connection._native

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave together: in two packets the second would wait for a delayed
        # acknowledgement of the first.
        wbufsize = 1 << 16
        disable_nagle_algorithm = True

        def answer(self, status, kind, body):
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self):
            address = urlsplit(self.path)
            if address.path == "/ready":
                return self.answer(200, "text/plain", b"ready\n")
            text = parse_qs(address.query).get("query", [""])[0]
            try:
                kind, body = answer_xml(native.query_sparql(ledger, text))
            except Exception as error:
                return self.answer(400, "text/plain", f"{error}\n".encode())
            self.answer(200, kind, body.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)

    def end(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        connection.close()


{"load": load, "serve": serve}[sys.argv[1]](*sys.argv[2:])
