//! Tables of text. The first column is aligned left, the others (numbers) right.

/// Rows of equal length under a head.
#[derive(Clone, Debug)]
pub struct TextTable {
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// A table with its head.
    pub fn new(head: &[&str]) -> Self {
        Self { rows: vec![head.iter().map(|name| (*name).to_owned()).collect()] }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.rows[0].len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// True when there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.len() == 1
    }

    /// The lines, each indented by two blanks.
    pub fn render(&self) -> String {
        let width = |c: usize| self.rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = format!("  {:<w$}", row[0], w = widths[0]);
            for (cell, w) in row.iter().zip(&widths).skip(1) {
                line.push_str(&format!("  {cell:>w$}"));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = TextTable::new(&["tree", "reads"]);
        table.row(vec!["psog".into(), "1".into()]);
        table.row(vec!["é".into(), "1234567".into()]);
        assert_eq!(table.render(), "  tree    reads\n  psog        1\n  é     1234567\n");
    }
}
