//! How many rows a scale has.

use serde::Serialize;

/// Row counts of one scale. Scale 1 is about 1 GB of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Customers; each has an address and a card of its own.
    pub customers: u64,
    /// Addresses: every second customer has another one.
    pub addresses: u64,
    /// Cards: as addresses.
    pub cards: u64,
    /// Orders, of one to five items each.
    pub orders: u64,
    /// Times that somebody logged on.
    pub logons: u64,
    /// Products.
    pub products: u64,
    /// Warehouses; nine of ten hold a given product.
    pub warehouses: u64,
}

/// Fewest of anything, so that the smallest scale still has all relations.
const ROWS_MIN: f64 = 20.0;

impl Sizes {
    /// The counts of a scale. Products and warehouses are 1,000 each from scale 1 on, as a business
    /// gains customers rather than products.
    pub fn of_scale(scale: f64) -> Self {
        let of = |at_one: f64| (at_one * scale).round().max(ROWS_MIN) as u64;
        let capped = |at_one: f64| (at_one * scale.min(1.0).sqrt()).round().max(ROWS_MIN) as u64;
        Sizes {
            customers: of(1e6),
            addresses: of(1.5e6),
            cards: of(1.5e6),
            orders: of(1.43e6),
            logons: of(2.38e6),
            products: capped(1_000.0),
            warehouses: capped(1_000.0),
        }
    }
}
