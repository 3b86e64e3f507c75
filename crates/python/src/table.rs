//! Tables with Arrow's C stream interface, which pandas, Polars, `DuckDB` and pyarrow read.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator};
use arrow_array::{StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use lab::results::table::{Column, Table};
use lab::{Error, Kind};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

/// Name of a capsule that contains a stream, prescribed by the interface.
const STREAM: &CStr = c"arrow_array_stream";

/// A table that exports Arrow streams.
#[pyclass(frozen, module = "floatgate._core")]
pub(crate) struct ArrowTable {
    batch: RecordBatch,
    columns: Table,
}

impl ArrowTable {
    /// Creates a table with the columns of `table`.
    ///
    /// # Errors
    /// Fails if the columns differ in length.
    pub(crate) fn new(table: Table) -> Result<Self, Error> {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = table
            .columns()
            .iter()
            .map(|(name, column)| match column {
                Column::Text(values) => {
                    let array = StringArray::from_iter_values(values);
                    (Field::new(name, DataType::Utf8, false), Arc::new(array) as ArrayRef)
                }
                Column::F64(values) => {
                    let array = Float64Array::from(values.clone());
                    (Field::new(name, DataType::Float64, true), Arc::new(array) as ArrayRef)
                }
                Column::U64(values) => {
                    let array = UInt64Array::from(values.clone());
                    (Field::new(name, DataType::UInt64, true), Arc::new(array) as ArrayRef)
                }
            })
            .unzip();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
            .map_err(|source| Error::new(Kind::Io, "making a table").source(source))?;
        Ok(Self { batch, columns: table })
    }
}

#[pymethods]
impl ArrowTable {
    /// Exports a stream of one batch. A schema that the reader requests is ignored, which the
    /// interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.columns().keys().cloned().collect()
    }

    /// The values of each column, by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (name, column) in self.columns.columns() {
            match column {
                Column::Text(values) => columns.set_item(name, values)?,
                Column::F64(values) => columns.set_item(name, values)?,
                Column::U64(values) => columns.set_item(name, values)?,
            }
        }
        Ok(columns)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        let (rows, columns) = (self.batch.num_rows(), self.batch.num_columns());
        format!("Table({rows} rows, {columns} columns)")
    }
}
