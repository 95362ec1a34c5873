//! The Berlin SPARQL Benchmark: generator, query templates, parameter rules
