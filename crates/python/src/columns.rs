//! An answer as Arrow columns, for `__arrow_c_stream__`.
//!
//! | all values of the column are | Arrow type |
//! |---|---|
//! | integers (xsd:integer and its kin) that fit 64 bits | int64 |
//! | numbers, not all of them such integers | float64 |
//! | booleans | bool |
//! | anything else, or there are none | string |
//!
//! 1. Rows are kept as text, in chunks of bounded size, while the kinds of the values are noted.
//! 2. At the end the columns of one kind are parsed.
//!
//! The type of a column is known only at its end, so the whole answer is in memory once. IRIs are
//! their text, literals their lexical form, blank nodes `_:` and their label; unbound is null.

use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use snowmelt::Term;

use crate::convert::{ValueKind, kind_of};

/// Rows of a chunk, and about how many bytes of one column: the offsets of a string array have
/// 32 bits.
const CHUNK_ROWS: usize = 1 << 16;
const CHUNK_BYTES: usize = 1 << 26;

/// The kinds of values that a column has, as a set.
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const BOOLEAN: u8 = 4;
const TEXT: u8 = 8;

/// The columns of an answer while it is read.
pub struct Columns {
    columns: Vec<Column>,
    rows: usize,
    chunk_rows: Vec<usize>,
}

struct Column {
    name: String,
    kinds: u8,
    open: StringBuilder,
    chunks: Vec<StringArray>,
}

impl Columns {
    pub fn new(names: &[String]) -> Self {
        let column = |name: &String| Column {
            name: name.clone(),
            kinds: 0,
            open: StringBuilder::new(),
            chunks: Vec::new(),
        };
        Columns { columns: names.iter().map(column).collect(), rows: 0, chunk_rows: Vec::new() }
    }

    /// Adds a row.
    pub fn push(&mut self, terms: &[Option<Term>]) {
        let mut is_full = self.rows + 1 == CHUNK_ROWS;
        for (column, term) in self.columns.iter_mut().zip(terms) {
            column.push(term.as_ref());
            is_full |= column.open.values_slice().len() >= CHUNK_BYTES;
        }
        self.rows += 1;
        if is_full {
            self.close_chunk();
        }
    }

    fn close_chunk(&mut self) {
        for column in &mut self.columns {
            column.chunks.push(column.open.finish());
        }
        self.chunk_rows.push(std::mem::take(&mut self.rows));
    }

    /// All rows as a table.
    pub fn into_table(mut self) -> Result<Table, ArrowError> {
        if self.rows > 0 {
            self.close_chunk();
        }
        let field = |column: &Column| Field::new(&column.name, column.data_type(), true);
        let schema = Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()));
        let mut batches = Vec::new();
        for (at, rows) in self.chunk_rows.iter().enumerate() {
            let arrays = self.columns.iter().map(|column| column.typed(at)).collect();
            let options = RecordBatchOptions::new().with_row_count(Some(*rows));
            batches.push(RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?);
        }
        Ok(Table { schema, batches })
    }
}

/// An answer as Arrow; the streams of it share its memory.
pub struct Table {
    schema: Arc<Schema>,
    batches: Vec<RecordBatch>,
}

impl Table {
    /// A stream that another library takes over.
    pub fn stream(&self) -> FFI_ArrowArrayStream {
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, self.schema.clone())))
    }
}

impl Column {
    fn push(&mut self, term: Option<&Term>) {
        match term {
            None => self.open.append_null(),
            Some(Term::NamedNode(iri)) => self.append(TEXT, iri.as_str()),
            Some(Term::Literal(literal)) => {
                let text = literal.value();
                let kind = match kind_of(literal) {
                    ValueKind::Integer if text.parse::<i64>().is_ok() => INTEGER,
                    ValueKind::Integer | ValueKind::Decimal | ValueKind::Float
                        if text.parse::<f64>().is_ok() =>
                    {
                        REAL
                    }
                    ValueKind::Boolean if boolean(text).is_some() => BOOLEAN,
                    _ => TEXT,
                };
                self.append(kind, text);
            }
            Some(other) => self.append(TEXT, &other.to_string()),
        }
    }

    fn append(&mut self, kind: u8, text: &str) {
        self.kinds |= kind;
        self.open.append_value(text);
    }

    fn data_type(&self) -> DataType {
        match self.kinds {
            INTEGER => DataType::Int64,
            REAL => DataType::Float64,
            kinds if kinds == INTEGER | REAL => DataType::Float64,
            BOOLEAN => DataType::Boolean,
            _ => DataType::Utf8,
        }
    }

    fn typed(&self, chunk: usize) -> ArrayRef {
        let texts = &self.chunks[chunk];
        match self.data_type() {
            DataType::Int64 => Arc::new(Int64Array::from_iter(
                texts.iter().map(|text| text.and_then(|text| text.parse().ok())),
            )),
            DataType::Float64 => Arc::new(Float64Array::from_iter(
                texts.iter().map(|text| text.and_then(|text| text.parse().ok())),
            )),
            DataType::Boolean => {
                Arc::new(BooleanArray::from_iter(texts.iter().map(|text| text.and_then(boolean))))
            }
            _ => Arc::new(texts.clone()),
        }
    }
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "1" => Some(true),
        "false" | "0" => Some(false),
        _ => None,
    }
}
