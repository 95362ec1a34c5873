//! Snowmelt: a graph database that plans its reads.
