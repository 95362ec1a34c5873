//! The key of a template: the shape of a text, and all options that change its algebra.

use super::QueryOptions;
use super::view::VisibleGraphs;
use crate::algebra::bind;

#[derive(PartialEq, Eq, Hash)]
pub(super) struct TemplateKey {
    shape: u128,
    options: Box<str>,
}

impl TemplateKey {
    pub fn new(shape: u128, options: &QueryOptions, visible: Option<&VisibleGraphs>) -> Self {
        let mut key = String::new();
        for part in options.base.iter().chain(&options.default_graphs) {
            key.push_str(part);
            key.push('\u{1}');
        }
        key.push('\u{2}');
        for part in &options.named_graphs {
            key.push_str(part);
            key.push('\u{1}');
        }
        key.push('\u{2}');
        key.push_str(&bind::key(&options.bindings));
        for (name, iri) in options.prefixes.iter() {
            key.extend(["\u{1}", name, ":", iri]);
        }
        key.push('\u{2}');
        if let Some(visible) = visible {
            key.push_str(&visible.number.to_string());
        }
        Self { shape, options: key.into_boxed_str() }
    }
}
