//! A table in memory, column by column, to and from Parquet.
//!
//! Texts are required; numbers are optional, because some are absent on real drives. Rows are in
//! one row group, compressed with Snappy. On reading, columns are found by name, so that a later
//! version may add some.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::Error;

/// Values of one column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Texts, each present.
    Text(Vec<String>),
    /// Floating-point numbers.
    F64(Vec<Option<f64>>),
    /// Whole numbers.
    U64(Vec<Option<u64>>),
}

/// Columns of equal length.
#[derive(Clone, Debug)]
pub struct Table {
    /// File that it is kept in, for errors.
    name: &'static str,
    columns: BTreeMap<String, Column>,
}

impl Table {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, columns: BTreeMap::new() }
    }

    /// Columns by name, in the order of their names.
    pub const fn columns(&self) -> &BTreeMap<String, Column> {
        &self.columns
    }

    pub(crate) fn insert(&mut self, column: &str, values: Column) {
        self.columns.insert(column.to_owned(), values);
    }

    pub(crate) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    pub(crate) fn text(&self, column: &'static str) -> Result<&[String], Error> {
        match self.columns.get(column) {
            Some(Column::Text(values)) => Ok(values),
            _ => Err(self.no_column(column, "text")),
        }
    }

    pub(crate) fn f64(&self, column: &'static str) -> Result<&[Option<f64>], Error> {
        match self.columns.get(column) {
            Some(Column::F64(values)) => Ok(values),
            _ => Err(self.no_column(column, "floating-point numbers")),
        }
    }

    pub(crate) fn u64(&self, column: &'static str) -> Result<&[Option<u64>], Error> {
        match self.columns.get(column) {
            Some(Column::U64(values)) => Ok(values),
            _ => Err(self.no_column(column, "whole numbers")),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn write(&self, to: impl Write + Send) -> Result<(), Error> {
        self.try_write(to).map_err(|source| Error::Table { table: self.name, source })
    }

    pub(crate) fn read(name: &'static str, from: Bytes) -> Result<Self, Error> {
        Self::try_read(name, from).map_err(|source| Error::Table { table: name, source })
    }

    fn no_column(&self, column: &'static str, kind: &'static str) -> Error {
        Error::NoColumn { table: self.name, column, kind }
    }

    fn schema(&self) -> String {
        let fields = self.columns.iter().map(|(name, column)| match column {
            Column::Text(_) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Column::F64(_) => format!("OPTIONAL DOUBLE {name};"),
            Column::U64(_) => format!("OPTIONAL INT64 {name} (INTEGER(64,false));"),
        });
        format!("message floatgate {{ {} }}", fields.collect::<Vec<_>>().join(" "))
    }

    fn try_write(&self, to: impl Write + Send) -> Result<(), ParquetError> {
        let schema = Arc::new(parse_message_type(&self.schema())?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        // The schema was made from the same map, so the columns come in its order.
        for column in self.columns.values() {
            let mut writer = group.next_column()?.expect("the schema has as many columns");
            match column {
                Column::Text(values) => {
                    let values: Vec<_> =
                        values.iter().map(|value| ByteArray::from(value.as_str())).collect();
                    writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
                }
                Column::F64(values) => {
                    let (present, levels) = levels(values);
                    writer.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
                }
                Column::U64(values) => {
                    let (present, levels) = levels(values);
                    let present: Vec<i64> = present.into_iter().map(u64::cast_signed).collect();
                    writer.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        file.close()?;
        Ok(())
    }

    fn try_read(name: &'static str, from: Bytes) -> Result<Self, ParquetError> {
        let file = SerializedFileReader::new(from)?;
        let mut table = Self::new(name);
        for index in 0..file.num_row_groups() {
            let group = file.get_row_group(index)?;
            for (index, meta) in group.metadata().columns().iter().enumerate() {
                let rows = usize::try_from(meta.num_values()).unwrap_or(0);
                let column = meta.column_descr().name();
                match group.get_column_reader(index)? {
                    ColumnReader::ByteArrayColumnReader(reader) => {
                        let texts = optional(reader, rows)?.into_iter().map(|text| {
                            let text = text.unwrap_or_default();
                            text.as_utf8().map(str::to_owned)
                        });
                        let texts = texts.collect::<Result<Vec<_>, _>>()?;
                        table.append(column, Column::Text(texts));
                    }
                    ColumnReader::DoubleColumnReader(reader) => {
                        table.append(column, Column::F64(optional(reader, rows)?));
                    }
                    ColumnReader::Int64ColumnReader(reader) => {
                        let values = optional(reader, rows)?.into_iter();
                        let values = values.map(|value| value.map(i64::cast_unsigned)).collect();
                        table.append(column, Column::U64(values));
                    }
                    // A type that this version does not write: not a column it looks for.
                    _ => {}
                }
            }
        }
        Ok(table)
    }

    fn append(&mut self, column: &str, values: Column) {
        match (self.columns.get_mut(column), values) {
            (Some(Column::Text(all)), Column::Text(more)) => all.extend(more),
            (Some(Column::F64(all)), Column::F64(more)) => all.extend(more),
            (Some(Column::U64(all)), Column::U64(more)) => all.extend(more),
            (_, values) => self.insert(column, values),
        }
    }
}

/// The values that are present, and for every row whether one is.
fn levels<T: Copy>(values: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
    let present = values.iter().copied().flatten().collect();
    (present, values.iter().map(|value| i16::from(value.is_some())).collect())
}

/// All `rows` values of a column, of which some may be absent.
fn optional<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    let (records, _, _) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if values.len() == records {
        return Ok(values.into_iter().map(Some).collect());
    }
    let mut values = values.into_iter();
    Ok(levels.into_iter().map(|level| if level > 0 { values.next() } else { None }).collect())
}
