//! The rows of a table, as dbgen makes them, as CSV.

use std::fmt::Display;
use std::io::{self, Write};

use tpchgen::csv::{
    CustomerCsv, LineItemCsv, NationCsv, OrderCsv, PartCsv, PartSuppCsv, RegionCsv, SupplierCsv,
};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};

use crate::schema::TpchTable;

/// Writes all rows of `table` at `scale`; how many.
///
/// # Errors
/// They cannot be written.
pub fn write_rows(table: TpchTable, scale: f64, to: &mut impl Write) -> io::Result<u64> {
    match table {
        TpchTable::Region => lines(RegionGenerator::new(scale, 1, 1).iter().map(RegionCsv::new), to),
        TpchTable::Nation => lines(NationGenerator::new(scale, 1, 1).iter().map(NationCsv::new), to),
        TpchTable::Supplier => lines(SupplierGenerator::new(scale, 1, 1).iter().map(SupplierCsv::new), to),
        TpchTable::Customer => lines(CustomerGenerator::new(scale, 1, 1).iter().map(CustomerCsv::new), to),
        TpchTable::Part => lines(PartGenerator::new(scale, 1, 1).iter().map(PartCsv::new), to),
        TpchTable::PartSupp => lines(PartSuppGenerator::new(scale, 1, 1).iter().map(PartSuppCsv::new), to),
        TpchTable::Orders => lines(OrderGenerator::new(scale, 1, 1).iter().map(OrderCsv::new), to),
        TpchTable::LineItem => lines(LineItemGenerator::new(scale, 1, 1).iter().map(LineItemCsv::new), to),
    }
}

fn lines(rows: impl Iterator<Item = impl Display>, to: &mut impl Write) -> io::Result<u64> {
    let mut count = 0;
    for row in rows {
        writeln!(to, "{row}")?;
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_as_many_rows_as_the_specification_says() {
        for (table, rows) in [
            (TpchTable::Region, 5),
            (TpchTable::Nation, 25),
            (TpchTable::Supplier, 100),
            (TpchTable::Customer, 1500),
            (TpchTable::Part, 2000),
            (TpchTable::PartSupp, 8000),
            (TpchTable::Orders, 15_000),
            (TpchTable::LineItem, 60_175),
        ] {
            let mut text = Vec::new();
            assert_eq!(write_rows(table, 0.01, &mut text).unwrap(), rows, "{table:?}");
            // As many fields in a row as the table has columns.
            let columns = table.columns().split(", ").count();
            let first = text.split(|b| *b == b'\n').next().unwrap();
            let mut quoted = false;
            let commas = first.iter().filter(|b| {
                quoted ^= **b == b'"';
                **b == b',' && !quoted
            });
            assert_eq!(commas.count() + 1, columns, "{table:?}: {}", String::from_utf8_lossy(first));
        }
    }
}
