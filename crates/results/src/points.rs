//! The data of charts as one long table: a row a point.

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
    /// Name of the x axis, with its unit; of a heat map the end of the cell.
    pub x_name: String,
    /// Name of the y axis, with its unit; of a heat map the upper end of the cell.
    pub y_name: String,
    /// Load of the point, such as `T8Q4`, or its name on an axis without numbers; else empty.
    pub label: String,
    /// Position on the x axis, in the unit of its name; absent where the axis has no numbers.
    pub x: Option<f64>,
    /// Value on the y axis, in the unit of its name.
    pub y: f64,
    /// Share of the requests of its time in the cell of a heat map, 0 to 1; absent in others.
    pub share: Option<f64>,
}

/// A column of texts, and what it is of.
type Text = (&'static str, fn(&ChartPoint) -> &str);
/// A column of numbers, and what it is of.
type Number = (&'static str, fn(&ChartPoint) -> Option<f64>);

const TEXTS: [Text; 6] = [
    ("chart", |point| &point.chart),
    ("title", |point| &point.title),
    ("series", |point| &point.series),
    ("x_name", |point| &point.x_name),
    ("y_name", |point| &point.y_name),
    ("label", |point| &point.label),
];
const NUMBERS: [Number; 3] =
    [("x", |point| point.x), ("y", |point| Some(point.y)), ("share", |point| point.share)];

impl Points {
    /// The table as CSV [rfc-4180], the numbers in full.
    pub fn to_csv(&self) -> String {
        let names = TEXTS.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.chain(NUMBERS.iter().map(|(name, _)| *name)).collect();
        let mut csv = names.join(",") + "\r\n";
        for row in &self.rows {
            let texts = TEXTS.iter().map(|(_, of)| quoted(of(row)));
            let numbers = NUMBERS.iter().map(|(_, of)| of(row));
            let numbers = numbers.map(|it| it.map_or_else(String::new, |it| it.to_string()));
            let cells: Vec<String> = texts.chain(numbers).collect();
            csv.push_str(&cells.join(","));
            csv.push_str("\r\n");
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
        for (name, of) in NUMBERS {
            table.insert(name, Column::F64(self.rows.iter().map(of).collect()));
        }
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
        let sample = ChartPoint {
            chart: "4k-time-iops".into(),
            title: "Throughput, \"4K\"".into(),
            series: "stock".into(),
            x: Some(0.5),
            y: 42_600.5,
            ..ChartPoint::default()
        };
        let load =
            ChartPoint { chart: "8k-iops".into(), label: "T8Q4".into(), ..ChartPoint::default() };
        let cell = ChartPoint { share: Some(0.25), ..sample.clone() };
        Points { rows: vec![sample, load, cell] }
    }

    #[test]
    fn numbers_are_columns_of_numbers_and_texts_with_commas_stay_one_cell() {
        let csv = points().to_csv();
        let rows: Vec<&str> = csv.split("\r\n").collect();
        assert_eq!(rows[0], "chart,title,series,x_name,y_name,label,x,y,share");
        assert_eq!(rows[1], "4k-time-iops,\"Throughput, \"\"4K\"\"\",stock,,,,0.5,42600.5,");
        assert_eq!(rows[2], "8k-iops,,,,,T8Q4,,0,", "a load is no number");
        assert!(rows[3].ends_with(",0.5,42600.5,0.25"), "{}", rows[3]);
    }

    #[test]
    fn parquet_holds_every_row_with_its_numbers() {
        let mut bytes = Vec::new();
        points().to_parquet(&mut bytes).unwrap();
        let table = Table::read("charts.parquet", bytes.into()).unwrap();
        assert_eq!(table.f64("x").unwrap(), [Some(0.5), None, Some(0.5)]);
        assert_eq!(table.f64("y").unwrap(), [Some(42_600.5), Some(0.0), Some(42_600.5)]);
        assert_eq!(table.f64("share").unwrap(), [None, None, Some(0.25)]);
        assert_eq!(table.text("series").unwrap(), ["stock", "", "stock"]);
    }
}
