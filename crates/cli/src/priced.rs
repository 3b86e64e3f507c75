//! Prices that the command line states.

use anyhow::Result;
use lab::results::Run;
use lab::results::price::Price;
use lab::{Error, Kind};

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

/// Gives each run the price of its drive; a price in another currency than those that are stated
/// is left out. Returns the titles of runs that lost theirs, each once.
pub(crate) fn apply(prices: &DrivePrices, runs: &mut [Run]) -> Vec<String> {
    let mut without: Vec<String> = Vec::new();
    for run in runs {
        let stated = prices.iter().find(|(drive, _)| *drive == run.target.name);
        if let Some((_, price)) = stated {
            run.target.price = Some(price.clone());
        } else if let (Some((_, first)), Some(own)) = (prices.first(), &run.target.price)
            && own.currency != first.currency
        {
            run.target.price = None;
            if !without.contains(&run.target.title) {
                without.push(run.target.title.clone());
            }
        }
    }
    without
}
