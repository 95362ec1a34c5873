//! SPARQL: plan, optimise, execute in batches
