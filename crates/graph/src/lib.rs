//! RDF on trees: term ids, dictionary, quad indexes, load, dump
