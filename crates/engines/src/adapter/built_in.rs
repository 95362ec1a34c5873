//! The adapters that come with the program, and the files beside them.

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../adapters/", $name)))),*]
    };
}

const FILES: &[(&str, &str)] = files![
    "snowmelt.toml",
    "virtuoso.toml",
    "oxigraph.toml",
    "jena.toml",
    "fluree.toml",
    "postgresql.toml",
    "duckdb.toml",
    "fluree_server.py",
    "duckdb_server.py",
];

/// The engines there are adapters of.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter_map(|(name, _)| name.strip_suffix(".toml"))
}

/// The adapter's text.
pub fn text(engine: &str) -> Option<&'static str> {
    side_file(&format!("{engine}.toml"))
}

/// A file beside the adapters.
pub fn side_file(name: &str) -> Option<&'static str> {
    FILES.iter().find(|(file, _)| *file == name).map(|(_, text)| *text)
}
