"""Graphs that paths and joins are hard on, as N-Triples: a chain, a ring, a tree, a grid, cliques, a
graph at random, a hub, and values and texts whose keys meet."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from ntriples import LABEL, SUBCLASS, TYPE, integer, iri, text, triple

BASE = "http://snowmelt.test/shapes/"
CHAIN, RING, LEAVES, GRID, CLIQUES, CLIQUE, NODES, VALUES, TEXTS = 2000, 1000, 4096, 60, 40, 25, 20_000, 10_000, 20_000


def node(kind, *numbers):
    return iri("%s%s%s" % (BASE, kind, "-".join(map(str, numbers))))


def term(name):
    return iri(BASE + "terms#" + name)


def paths(draw):
    for i in range(CHAIN):
        triple(node("c", i), term("next"), node("c", i + 1))
    for i in range(RING):
        triple(node("r", i), term("ring"), node("r", (i + 1) % RING))
    for i in range(2, 2 * LEAVES):
        triple(node("t", i), SUBCLASS, node("t", i // 2))
    for x in range(GRID):
        for y in range(GRID):
            if x + 1 < GRID:
                triple(node("g", x, y), term("east"), node("g", x + 1, y))
            if y + 1 < GRID:
                triple(node("g", x, y), term("south"), node("g", x, y + 1))
    for _ in range(2 * NODES):
        triple(node("n", draw.randrange(NODES)), term("linked"), node("n", draw.randrange(NODES)))


def joins(draw):
    for k in range(CLIQUES):
        for a in range(CLIQUE):
            for b in range(CLIQUE):
                if a != b:
                    triple(node("k", k, a), term("knows"), node("k", k, b))
    for i in range(NODES):
        triple(node("n", i), TYPE, node("t", LEAVES + draw.randrange(LEAVES)))
        # One in a hundred belongs to a group of its own, the others to a few large ones.
        group = "own%d" % i if i % 100 == 0 else "large%d" % min(4, int(draw.expovariate(1)))
        triple(node("n", i), term("group"), node(group))


def values(draw):
    for i in range(VALUES):
        triple(node("v", i), term("value"), integer(draw.randrange(10 * VALUES)))
        triple(node("v", i), term("part"), node("w", i % 100))
    for i in range(TEXTS):
        word = "text %06d" % draw.randrange(5 * TEXTS)
        triple(node("x", i), LABEL, text(word))
        triple(node("y", i), term("title"), text(word.upper() if i % 2 else word, "en"))


def main():
    draw = random.Random(20261129)
    paths(draw)
    joins(draw)
    values(draw)


main()
