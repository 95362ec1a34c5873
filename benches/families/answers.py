"""Answers of different engines, made comparable.

An answer is a list of rows; a row is a list of cells in the order of the variables' names. It is
told by its number of rows, by a digest of its cells but for fractions, and by the sum of these, each
with a weight by the rest of its row: engines add in another order and in single precision. Neither
depends on the order of rows. Whole numbers are compared by value, blank nodes have no names.
"""

import hashlib
import json
import math

XSD = "http://www.w3.org/2001/XMLSchema#"
WHOLE = {XSD + kind for kind in (
    "integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
    "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong", "unsignedShort")}
FRACTION = {XSD + kind for kind in ("decimal", "double", "float")}


def cell(kind, value, datatype=None, language=None):
    """A term as text, or as a float; kind is iri, bnode or literal."""
    if kind == "iri":
        return "<%s>" % value
    if kind == "bnode":
        return "_"
    if language:
        return '"%s"@%s' % (value, language.lower())
    if datatype in WHOLE or datatype in FRACTION:
        return number(value, datatype)
    if datatype in (None, XSD + "string"):
        return '"%s"' % value
    return '"%s"^^<%s>' % (value, datatype)


def number(text, datatype):
    """A whole number as its digits, one that may have a fraction as a float."""
    try:
        return str(int(text)) if datatype in WHOLE else float(text)
    except ValueError:
        return '"%s"' % text


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


def told(rows):
    """What there is to compare: rows, digest, sum of fractions."""
    total, fractions = 0, 0.0
    for row in rows:
        exact = "\t".join("~" if isinstance(c, float) else c for c in row)
        hashed = int.from_bytes(hashlib.blake2b(exact.encode(), digest_size=8).digest(), "little")
        total += hashed
        fractions += sum((1 + hashed / 2**64) * c for c in row if isinstance(c, float) and math.isfinite(c))
    return {"rows": len(rows), "digest": "%016x" % (total % 2**64), "fractions": fractions}


def alike(a, b):
    """Whether two answers, as they are told, are the same."""
    if any(a.get(key) != b.get(key) for key in ("rows", "digest")):
        return False
    return math.isclose(a["fractions"], b["fractions"], rel_tol=1e-4, abs_tol=1e-6)
