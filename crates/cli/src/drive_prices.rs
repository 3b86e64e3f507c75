//! Prices that the command line states.

use anyhow::Result;
use lab::results::Run;
use lab::results::price::Price;
use lab::{Error, Kind};

use crate::output;

/// Drives by name, with the price of each.
pub(crate) type DrivePrices = [(String, Price)];

/// Refuses two prices of one drive, and prices that cannot be compared.
pub(crate) fn check(prices: &DrivePrices) -> Result<()> {
    for (index, (drive, price)) in prices.iter().enumerate() {
        if prices[..index].iter().any(|(other, _)| other == drive) {
            let text = format!("--price {drive}: it has two prices");
            return Err(Error::new(Kind::Input, text).hint("state one").into());
        }
        let (_, first) = &prices[0];
        if price.currency != first.currency {
            let text = format!(
                "--price {drive}: {} is not {}, the currency of the first price",
                price.currency, first.currency
            );
            return Err(Error::new(Kind::Input, text).hint("state all in one currency").into());
        }
    }
    Ok(())
}

/// Gives each run the price that is stated of its drive; a published one in another currency is
/// left out, which is said.
pub(crate) fn apply(prices: &DrivePrices, runs: &mut [Run]) {
    let currency = prices.first().map(|(_, first)| first.currency.as_str());
    for run in runs {
        let stated = prices.iter().find(|(drive, _)| *drive == run.target.name);
        let price = stated.map(|(_, price)| price.clone()).or_else(|| run.target.price.take());
        run.target.price = price.filter(|price| is_in(price, currency, &run.target.title));
    }
}

/// True if `price` is in `currency`, or in any where there is none; says what is left out.
pub(crate) fn is_in(price: &Price, currency: Option<&str>, title: &str) -> bool {
    let is_in = currency.is_none_or(|it| it == price.currency);
    if !is_in {
        let text = format!("{title}: its price in {} is left out", price.currency);
        output::talk(&format!("{text}, since those that are stated are in another currency"));
    }
    is_in
}
