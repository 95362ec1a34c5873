//! The SPARQL Protocol over HTTP
