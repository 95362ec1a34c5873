"""Answers of different engines, made comparable: their number of rows and a digest.

An answer is a list of rows; a row is a list of cells in the order of the variables' names. The
digest does not depend on the order of rows. Numbers are compared by value, those with fractions to
five digits, because engines add in another order and single precision; blank nodes have no names.
"""

import hashlib
import json

XSD = "http://www.w3.org/2001/XMLSchema#"
WHOLE = {XSD + kind for kind in (
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
    "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort")}
FRACTION = {XSD + kind for kind in ("decimal", "double", "float")}


def cell(kind, value, datatype=None, language=None):
    """A term as text; kind is iri, bnode or literal."""
    if kind == "iri":
        return "<%s>" % value
    if kind == "bnode":
        return "_"
    if language:
        return '"%s"@%s' % (value, language.lower())
    if datatype in WHOLE or datatype in FRACTION:
        return number(value)
    if datatype in (None, XSD + "string"):
        return '"%s"' % value
    return '"%s"^^<%s>' % (value, datatype)


def number(text):
    try:
        value = float(text)
    except ValueError:
        return '"%s"' % text
    if value == int(value) if abs(value) < 2**53 else False:
        return "%d" % value
    return "%.5g" % value


def of_json(body):
    """Rows of SPARQL results in JSON."""
    answer = json.loads(body)
    if "boolean" in answer:
        return [[str(answer["boolean"]).lower()]]
    names = sorted(answer["head"]["vars"])
    kinds = {"uri": "iri", "bnode": "bnode"}
    rows = []
    for binding in answer["results"]["bindings"]:
        row = []
        for name in names:
            term = binding.get(name)
            row.append("" if term is None else cell(
                kinds.get(term["type"], "literal"), term["value"], term.get("datatype"), term.get("xml:lang")))
        rows.append(row)
    return rows


def terms_of_json(body):
    """The terms of the first column, as SPARQL writes them."""
    answer = json.loads(body)
    name = answer["head"]["vars"][0]
    return [written(b[name]) for b in answer["results"]["bindings"] if name in b]


def written(term):
    if term["type"] == "uri":
        return "<%s>" % term["value"]
    text = term["value"].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    if "xml:lang" in term:
        return '"%s"@%s' % (text, term["xml:lang"])
    return '"%s"^^<%s>' % (text, term["datatype"]) if "datatype" in term else '"%s"' % text


def digest(rows):
    """Sixteen hexadecimal digits that are the same for the same rows in any order."""
    total = 0
    for row in rows:
        hashed = hashlib.blake2b("\t".join(row).encode(), digest_size=8).digest()
        total += int.from_bytes(hashed, "little")
    return "%016x" % (total % 2**64)
