"""Debian's packages as N-Triples: what `apt-cache dumpavail` prints, on standard input.

A package is named by its name, so that those of several architectures are one. What it depends on
is named directly, each alternative alike; a dependency on a version is also a blank node with the
package and the version.
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ntriples import TYPE, integer, iri, text, triple

BASE = "http://snowmelt.test/debian/"
RELATIONS = ["Depends", "Pre-Depends", "Recommends", "Suggests", "Conflicts", "Breaks", "Replaces", "Provides", "Enhances"]
WORDS = {"Architecture": "architecture", "Section": "section", "Priority": "priority"}
TEXTS = {"Version": "version", "Filename": "filename", "SHA256": "sha256"}
NUMBERS = {"Installed-Size": "installedSize", "Size": "size"}
ON_VERSION = re.compile(r"([^\s:(]+)(?::\S+)?\s*(?:\(\s*(<<|<=|=|>=|>>)\s*([^)\s]+)\s*\))?")


def term(name):
    return iri(BASE + "terms#" + name)


def package(name):
    return iri(BASE + "package/" + name)


def stanzas(lines):
    """Fields of each package; lines that go on are joined."""
    fields, last = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line:
            if fields:
                yield fields
            fields, last = {}, None
        elif line[0] in " \t":
            fields[last] += "\n" + line.strip()
        else:
            last, _, value = line.partition(":")
            fields[last] = value.strip()
    if fields:
        yield fields


class Converter:
    def __init__(self):
        self.maintainers, self.nodes = {}, 0

    def maintainer(self, value):
        if value not in self.maintainers:
            node = self.maintainers[value] = iri("%smaintainer/%d" % (BASE, len(self.maintainers) + 1))
            name, _, address = value.partition("<")
            triple(node, TYPE, term("Maintainer"))
            triple(node, term("name"), text(name.strip()))
            triple(node, term("address"), iri("mailto:" + address.rstrip("> ")))
        return self.maintainers[value]

    def relation(self, subject, name, value):
        predicate = term(name[0].lower() + name[1:].replace("-D", "D"))
        for alternative in re.split(r"[,|]\s*", value.replace("\n", " ")):
            match = ON_VERSION.match(alternative.strip())
            if not match:
                continue
            other, comparison, version = match.groups()
            triple(subject, predicate, package(other))
            if version:
                self.nodes += 1
                node = "_:v%d" % self.nodes
                triple(subject, term("onVersion"), node)
                triple(node, term("of"), package(other))
                triple(node, term("comparison"), text(comparison))
                triple(node, term("version"), text(version))

    def package(self, fields):
        subject = package(fields["Package"])
        triple(subject, TYPE, term("Package"))
        triple(subject, term("name"), text(fields["Package"]))
        for field, name in WORDS.items():
            triple(subject, term(name), iri("%s%s/%s" % (BASE, name, fields[field])))
        for field, name in TEXTS.items():
            if field in fields:
                triple(subject, term(name), text(fields[field]))
        for field, name in NUMBERS.items():
            if field in fields:
                triple(subject, term(name), integer(fields[field]))
        triple(subject, term("maintainer"), self.maintainer(fields["Maintainer"]))
        triple(subject, term("source"), iri(BASE + "source/" + fields.get("Source", fields["Package"]).split()[0]))
        if "Description" in fields:
            triple(subject, term("description"), text(fields["Description"], "en"))
        if "Homepage" in fields:
            triple(subject, term("homepage"), iri(fields["Homepage"]))
        for tag in re.split(r",\s*", fields.get("Tag", "").replace("\n", " ")):
            if tag:
                triple(subject, term("tag"), iri(BASE + "tag/" + tag.strip()))
        for name in RELATIONS:
            if name in fields:
                self.relation(subject, name, fields[name])


def main():
    converter = Converter()
    for fields in stanzas(sys.stdin):
        converter.package(fields)


main()
