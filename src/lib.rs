//! The façade.
#![forbid(unsafe_code)]
