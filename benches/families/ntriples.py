"""Writing N-Triples, for the generators and converters of the data sets."""

import sys

XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
SUBCLASS = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
# Characters that no IRI has, as they are written in one.
ODD = {c: "%%%02X" % c for c in [*range(33), *map(ord, '<>"{}|^`\\')]}


def iri(text):
    return "<%s>" % text.translate(ODD)


def text(value, language=None):
    return '"%s"%s' % (value.translate(ESCAPES), "@" + language if language else "")


def typed(value, kind):
    """A literal of a datatype of XML Schema."""
    return '"%s"^^<%s%s>' % (value, XSD, kind)


def integer(value):
    return typed(value, "integer")


def triple(subject, predicate, value):
    sys.stdout.write("%s %s %s .\n" % (subject, predicate, value))
