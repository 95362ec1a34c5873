//! The data as files, for engines that load them by their own means.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use snowmelt_lab::LabError;

use crate::rows::write_rows;
use crate::schema::{INDEXES, KEYS, TpchTable};

/// A statement that answers the number of rows of all tables.
pub const TABLES_COUNTED: &str = "SELECT (SELECT count(*) FROM region) + (SELECT count(*) FROM nation) \
     + (SELECT count(*) FROM supplier) + (SELECT count(*) FROM customer) + (SELECT count(*) FROM part) \
     + (SELECT count(*) FROM partsupp) + (SELECT count(*) FROM orders) + (SELECT count(*) FROM lineitem)";

/// Fills a folder: a CSV file for each table, and `tables.sql` (the tables), `rows.sql` (COPY from
/// the files) and `keys.sql` (primary keys and indexes). Rows and bytes of the files.
///
/// # Errors
/// A file cannot be written.
pub fn write_scripts(folder: &Path, scale: f64) -> Result<(u64, u64), LabError> {
    let failed = |e: io::Error| LabError::file("fill", folder, e);
    fs::create_dir_all(folder).map_err(failed)?;
    let (mut rows, mut bytes) = (0, 0);
    let (mut tables, mut copies) = (String::new(), String::new());
    for table in TpchTable::ALL {
        let path = folder.join(format!("{}.csv", table.name()));
        let file = File::create(&path).map_err(failed)?;
        let mut to = BufWriter::with_capacity(1 << 18, file);
        rows += write_rows(table, scale, &mut to).map_err(failed)?;
        to.flush().map_err(failed)?;
        bytes += fs::metadata(&path).map_err(failed)?.len();
        tables += &format!("CREATE TABLE {} ({});\n", table.name(), table.columns());
        copies += &format!("COPY {} FROM '{}' (FORMAT csv, HEADER false);\n", table.name(), path.display());
    }
    let keys: String = KEYS.iter().chain(&INDEXES).map(|key| format!("{key};\n")).collect();
    for (name, text) in [("tables.sql", tables), ("rows.sql", copies), ("keys.sql", keys)] {
        fs::write(folder.join(name), text).map_err(failed)?;
    }
    Ok((rows, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_file_that_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let (rows, bytes) = write_scripts(dir.path(), 0.01).unwrap();
        assert_eq!(rows, 5 + 25 + 100 + 1500 + 2000 + 8000 + 15_000 + 60_175);
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        let texts = TpchTable::ALL.map(|table| read(&format!("{}.csv", table.name())));
        assert_eq!(texts.iter().map(String::len).sum::<usize>() as u64, bytes);
        let lines: usize = texts.iter().map(|text| text.lines().count()).sum();
        assert_eq!(lines as u64, rows);
        let (tables, copies) = (read("tables.sql"), read("rows.sql"));
        for table in TpchTable::ALL.map(TpchTable::name) {
            assert!(tables.contains(&format!("CREATE TABLE {table} (")), "{table}");
            assert!(copies.contains(&format!("COPY {table} FROM '/")), "{table}");
            assert!(TABLES_COUNTED.contains(&format!("FROM {table})")), "{table}");
        }
        assert_eq!(read("keys.sql").matches("PRIMARY KEY").count(), 8);
    }
}
