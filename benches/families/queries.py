"""Query files: families under headings, and parameters that are asked of the data.

A file `NAME.rq` of a data set's folder holds many queries. `## name` begins one; its text ends at
the next heading. What stands before the first heading, the prefixes, is put before each of them.
Words behind the name:

    ## name any rows            only the number of rows is compared: LIMIT without an order
    ## name from PATH A=b       the text is that of a file, beside this one, and its %A% is %b%

`parameters.rq` is written alike. Its queries give the terms that `%name%` stands for in the others:
a single one, or all of them with commas between. `"%name%"` is the text of a literal, `# ` begins
a comment. So the queries fit data of any size and any words.
"""

import fnmatch
import os
import re

HEADING = re.compile(r"^## +(\S+)[ ]*(.*)$", re.MULTILINE)
PARAMETER = re.compile(r'"%([A-Za-z]\w*)%"|%([A-Za-z]\w*)%')
COMMENT = re.compile(r"^#(?!#).*\n", re.MULTILINE)


class Family:
    """A named query; `any_rows` if an answer may have any rows of a larger one."""

    def __init__(self, name, group, text, any_rows):
        self.name, self.group, self.text, self.any_rows = name, group, text, any_rows

    def filled(self, parameters):
        """The text with terms in place of parameters; KeyError names one that has none."""
        def term(match):
            quoted, plain = match.groups()
            values = parameters[quoted or plain]
            if not values:
                raise KeyError(quoted or plain)
            return '"%s"' % lexical(values[0]) if quoted else ", ".join(values)
        return PARAMETER.sub(term, self.text)


def lexical(term):
    """The text of a literal, as it is written between quotation marks."""
    return re.match(r'"((?:[^"\\]|\\.)*)"', term).group(1)


def read(path):
    """The families of a file, in its order."""
    with open(path) as file:
        text = COMMENT.sub("", file.read())
    headings = list(HEADING.finditer(text))
    prologue = text[:headings[0].start()].strip() if headings else ""
    group = os.path.splitext(os.path.basename(path))[0]
    families = []
    for heading, following in zip(headings, headings[1:] + [None]):
        name, more = heading.groups()
        if more.startswith("from "):
            body = from_elsewhere(os.path.dirname(path), more.split()[1:])
        else:
            body = text[heading.end():following.start() if following else None].strip()
            body = prologue + "\n" + body if prologue else body
        families.append(Family(name, group, body, more == "any rows"))
    return families


def from_elsewhere(folder, words):
    with open(os.path.join(folder, words[0])) as file:
        text = file.read()
    for pair in words[1:]:
        theirs, ours = pair.split("=")
        text = text.replace("%%%s%%" % theirs, "%%%s%%" % ours)
    return text


def read_tsv(path):
    """Queries of a file in the form of SPARQLoscope's: name, description in brackets, tab, text."""
    with open(path) as file:
        lines = [line.rstrip("\n").split("\t", 1) for line in file if "\t" in line]
    # Its exports of so many rows may have any.
    return [Family(name.split(" [")[0], "sparqloscope", text, "result-size" in name)
            for name, text in lines]


def read_all(paths, only):
    """Families of files and folders of them, those whose name or group fits the pattern."""
    families = []
    for path in paths:
        if os.path.isdir(path):
            files = [os.path.join(path, name) for name in sorted(os.listdir(path))]
            families += read_all([f for f in files if f.endswith(".rq")], only)
        elif os.path.basename(path) != "parameters.rq":
            families += read_tsv(path) if path.endswith(".tsv") else read(path)
    return [f for f in families if fnmatch.fnmatch(f.name, only) or fnmatch.fnmatch(f.group, only)]
