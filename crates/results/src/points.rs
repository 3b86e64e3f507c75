//! The data of charts as one long table: a row a point.

use std::fmt::Write as _;
use std::io::Write;

use crate::Error;
use crate::table::{Column, Table};

/// Points of any number of charts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// In the order of the charts.
    pub rows: Vec<ChartPoint>,
}

/// One point of one chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartPoint {
    /// Name of the chart, unique on its page.
    pub chart: String,
    /// Its heading.
    pub title: String,
    /// Series that the point belongs to: a run, a cause.
    pub series: String,
    /// Name of the x axis, with its unit.
    pub x_name: String,
    /// Position on the x axis: a number, a load such as `T8Q4`, or a name.
    pub x: String,
    /// Name of the y axis, with its unit.
    pub y_name: String,
    /// Value on the y axis.
    pub y: f64,
    /// Label of the point: the load of a point of a curve, the share of a cell of a heat map.
    pub label: String,
}

/// A column of texts, and what it is of.
type Text = (&'static str, fn(&ChartPoint) -> &str);

const TEXTS: [Text; 7] = [
    ("chart", |point| &point.chart),
    ("title", |point| &point.title),
    ("series", |point| &point.series),
    ("x_name", |point| &point.x_name),
    ("x", |point| &point.x),
    ("y_name", |point| &point.y_name),
    ("label", |point| &point.label),
];

impl Points {
    /// The table as CSV [rfc-4180], the numbers in full.
    pub fn to_csv(&self) -> String {
        let mut csv = TEXTS.map(|(name, _)| name).join(",") + ",y\r\n";
        for row in &self.rows {
            for (_, of) in TEXTS {
                csv.push_str(&quoted(of(row)));
                csv.push(',');
            }
            let _ = write!(csv, "{}\r\n", row.y);
        }
        csv
    }

    /// The table as Parquet.
    ///
    /// # Errors
    /// Fails if `to` does not take it.
    pub fn to_parquet(&self, to: impl Write + Send) -> Result<(), Error> {
        let mut table = Table::new("charts.parquet");
        for (name, of) in TEXTS {
            let texts = self.rows.iter().map(|row| of(row).to_owned());
            table.insert(name, Column::Text(texts.collect()));
        }
        table.insert("y", Column::F64(self.rows.iter().map(|row| Some(row.y)).collect()));
        table.write(to)
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points() -> Points {
        let point = ChartPoint {
            chart: "4k-time-iops".into(),
            title: "Throughput, \"4K\"".into(),
            series: "stock".into(),
            x: "0.5".into(),
            y: 42_600.5,
            ..ChartPoint::default()
        };
        Points { rows: vec![point] }
    }

    #[test]
    fn texts_with_commas_and_quotes_stay_one_cell() {
        let csv = points().to_csv();
        let rows: Vec<&str> = csv.split("\r\n").collect();
        assert_eq!(rows[0], "chart,title,series,x_name,x,y_name,label,y");
        assert_eq!(rows[1], "4k-time-iops,\"Throughput, \"\"4K\"\"\",stock,,0.5,,,42600.5");
    }

    #[test]
    fn parquet_holds_every_row() {
        let mut bytes = Vec::new();
        points().to_parquet(&mut bytes).unwrap();
        let table = Table::read("charts.parquet", bytes.into()).unwrap();
        assert_eq!(table.f64("y").unwrap(), [Some(42_600.5)]);
        assert_eq!(table.text("series").unwrap(), ["stock"]);
    }
}
