//! Price of a drive, and of each gigabyte, of each request a second, of each terabyte written.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Price of a drive at a date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Amount, above 0, in `currency`.
    pub amount: f64,
    /// Currency, three letters of ISO 4217: `USD`.
    pub currency: String,
    /// Date, or a part of it: `2014-06-24`, `2014-06`, `2014`.
    pub date: String,
    /// Document that states it; empty where its user did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

impl Price {
    /// Date and source in words.
    pub fn origin(&self) -> String {
        let source = if self.source.is_empty() { "as stated" } else { &self.source };
        format!("{}, {source}", self.date)
    }

    /// Price of each decimal gigabyte of a capacity.
    pub fn per_gb(&self, user_gb: f64) -> Option<f64> {
        self.per(user_gb)
    }

    /// Price of each thousand requests a second.
    pub fn per_thousand_iops(&self, iops: f64) -> Option<f64> {
        self.per(iops / 1e3)
    }

    /// Price of each terabyte that may be written over the warranty.
    pub fn per_tb_written(&self, endurance_pb: f64) -> Option<f64> {
        self.per(endurance_pb * 1e3)
    }

    fn per(&self, amount: f64) -> Option<f64> {
        (amount > 0.0).then(|| self.amount / amount)
    }
}

/// Reads `12000USD@2014-06`.
impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is no price with its date, such as 12000USD@2014-06");
        let (sum, date) = text.split_once('@').ok_or_else(refused)?;
        let at = sum.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refused)?;
        let (amount, currency) = sum.split_at(at);
        let amount: f64 = amount.trim().parse().map_err(|_| refused())?;
        let is_currency = currency.len() == 3 && currency.bytes().all(|it| it.is_ascii_uppercase());
        if !(amount.is_finite() && amount > 0.0 && is_currency && is_date(date)) {
            return Err(refused());
        }
        Ok(Self {
            amount,
            currency: currency.to_owned(),
            date: date.to_owned(),
            source: String::new(),
        })
    }
}

/// True of a year, a year and a month, or a day.
fn is_date(text: &str) -> bool {
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let has_shape = [&[4][..], &[4, 2], &[4, 2, 2]].contains(&lengths.as_slice());
    let numbers: Option<Vec<u32>> = text.split('-').map(|it| it.parse().ok()).collect();
    has_shape
        && match numbers.as_deref() {
            Some([_]) => true,
            Some([_, month]) => (1..=12).contains(month),
            Some([_, month, day]) => (1..=12).contains(month) && (1..=31).contains(day),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_amount_currency_and_date() {
        let price: Price = "12000USD@2014-06".parse().unwrap();
        assert_eq!((price.currency.as_str(), price.date.as_str()), ("USD", "2014-06"));
        assert_eq!(price.origin(), "2014-06, as stated");
        assert_eq!(price.per_gb(2400.0), Some(5.0));
        assert_eq!(price.per_thousand_iops(120_000.0), Some(100.0));
        assert_eq!(price.per_tb_written(12.0), Some(1.0));
        assert_eq!(price.per_gb(0.0), None);
        for text in
            ["12000", "12000USD", "USD@2014", "0USD@2014", "1usd@2014", "1USD@June", "1USD@2014-13"]
        {
            let error = text.parse::<Price>().unwrap_err();
            assert!(error.contains("such as 12000USD@2014-06"), "{text}: {error}");
        }
    }
}
