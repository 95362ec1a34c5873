//! The parts of triples and quads as tuples.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// A part by its index, from the end if it is negative.
pub fn item<'py>(parts: Bound<'py, PyTuple>, index: isize) -> PyResult<Bound<'py, PyAny>> {
    let at = if index < 0 { index + parts.len() as isize } else { index };
    let at = usize::try_from(at).map_err(|_| PyIndexError::new_err("index out of range"))?;
    parts.get_item(at)
}

/// The parts as Python shows them.
pub fn reprs<const PARTS: usize>(parts: &Bound<'_, PyTuple>) -> PyResult<[String; PARTS]> {
    let mut texts = std::array::from_fn(|_| String::new());
    for (text, part) in texts.iter_mut().zip(parts) {
        *text = part.repr()?.extract()?;
    }
    Ok(texts)
}
