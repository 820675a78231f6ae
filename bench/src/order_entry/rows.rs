//! The rows of every table, as `COPY` reads them. A row depends only on seed, table and number, so
//! chunks are the same in whatever order and by however many threads they are made.

use super::schema::Table;
use super::sizes::Sizes;
use super::text;
use crate::seed::Stream;
use jiff::civil::{Date, date};
use std::fmt::Write;

/// Days of history that dates spread over, up to [`LAST_DAY`].
const HISTORY_DAYS: u64 = 5 * 365;
/// The last day of generated history: fixed, as data must not depend on when it is made.
const LAST_DAY: Date = date(2026, 6, 30);
/// Sales representatives and account managers.
pub const STAFF: u64 = 1_000;
/// Product categories.
pub const CATEGORIES: u64 = 50;
/// Orders with this status or a lower one wait to be processed.
pub const STATUS_OPEN_MAX: u64 = 4;
/// Highest status of a generated order.
const STATUS_MAX: u64 = 10;
/// Most items of an order.
pub const ITEMS_MAX: u64 = 5;
/// Languages of product descriptions.
const LANGUAGES: &[&str] = &["en", "de"];
/// Languages of customers.
const CUSTOMER_LANGUAGES: &[&str] = &["en", "de", "fr", "es", "it", "nl", "sv", "ja"];

/// Makes rows.
#[derive(Debug, Clone)]
pub struct Rows {
    seed: u64,
    sizes: Sizes,
    days: Vec<String>,
    births: Vec<String>,
}

/// One line of an order.
struct Item {
    product: u64,
    price_cents: u64,
    quantity: u64,
}

impl Rows {
    /// Rows of a scale and seed.
    pub fn new(seed: u64, sizes: Sizes) -> Self {
        let before = |days: u64| {
            let span = jiff::Span::new().days(days as i64);
            LAST_DAY.saturating_sub(span).to_string()
        };
        let days = (0..HISTORY_DAYS).map(before).collect();
        let births = (18 * 365..80 * 365).step_by(3).map(before).collect();
        Rows { seed, sizes, days, births }
    }

    /// How many numbers a table has: of rows, or of orders for the items.
    pub fn count(&self, table: Table) -> u64 {
        let sizes = &self.sizes;
        match table {
            Table::OrderItems | Table::Orders => sizes.orders,
            Table::Customers => sizes.customers,
            Table::Addresses => sizes.addresses,
            Table::CardDetails => sizes.cards,
            Table::Logon => sizes.logons,
            Table::Inventories => sizes.products * sizes.warehouses,
            Table::ProductInformation => sizes.products,
            Table::ProductDescriptions => sizes.products * LANGUAGES.len() as u64,
            Table::Warehouses => sizes.warehouses,
        }
    }

    /// Appends what belongs to one number, from 1 to [`Rows::count`]: a row; none, where a warehouse
    /// lacks a product; all items of an order.
    pub fn push(&self, table: Table, number: u64, into: &mut String) {
        let mut stream = self.stream(table, number);
        let written = match table {
            Table::OrderItems => self.items(number, into),
            Table::Orders => self.order(number, &mut stream, into),
            Table::Customers => self.customer(number, &mut stream, into),
            Table::Addresses => self.address(number, &mut stream, into),
            Table::CardDetails => self.card(number, &mut stream, into),
            Table::Logon => self.logon(number, &mut stream, into),
            Table::Inventories => self.inventory(number, &mut stream, into),
            Table::ProductInformation => self.product(number, &mut stream, into),
            Table::ProductDescriptions => self.description(number, &mut stream, into),
            Table::Warehouses => self.warehouse(number, &mut stream, into),
        };
        written.expect("writing to memory does not fail");
    }

    fn stream(&self, table: Table, number: u64) -> Stream {
        Stream::of(self.seed, &[table as u64, number])
    }

    /// The owner of an address or card: the first ones belong to the customers in turn.
    fn owner(&self, number: u64, stream: &mut Stream) -> u64 {
        let customers = self.sizes.customers;
        if number <= customers { number } else { stream.between(1, customers) }
    }

    fn day(&self, stream: &mut Stream) -> &str {
        stream.pick::<String>(&self.days)
    }

    fn time(&self, stream: &mut Stream) -> String {
        let second = stream.below(86_400);
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        format!("{} {hour:02}:{minute:02}:{:02}+00", self.day(stream), second % 60)
    }

    fn price_cents(&self, product: u64) -> u64 {
        self.stream(Table::ProductInformation, product).between(199, 99_999)
    }

    /// The items of an order, products ascending, as those who order do it too: no two of them then
    /// wait for each other in a circle.
    fn items_of(&self, order: u64) -> Vec<Item> {
        let mut stream = self.stream(Table::OrderItems, order);
        let count = stream.between(1, ITEMS_MAX);
        let stride = (self.sizes.products / ITEMS_MAX).max(1);
        let mut product = 0;
        let mut items = Vec::with_capacity(count as usize);
        for _ in 0..count {
            product += stream.between(1, stride);
            let quantity = stream.between(1, 8);
            items.push(Item { product, price_cents: self.price_cents(product), quantity });
        }
        items
    }

    fn items(&self, order: u64, into: &mut String) -> std::fmt::Result {
        let items = self.items_of(order);
        let mut stream = Stream::of(self.seed, &[Table::OrderItems as u64, order, 1]);
        for (index, item) in items.iter().enumerate() {
            write!(into, "{order}\t{}\t{}\t", index + 1, item.product)?;
            push_cents(into, item.price_cents)?;
            let wrap = stream.pick_early(&["none", "plain paper", "birthday", "season"]);
            let condition = stream.pick_early(&["new", "shop worn", "repaired", "used"]);
            let at = self.time(&mut stream);
            writeln!(into, "\t{}\t{at}\t{wrap}\t{condition}", item.quantity)?;
        }
        Ok(())
    }

    fn order(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let items = self.items_of(number);
        let total = items.iter().map(|item| item.price_cents * item.quantity).sum();
        let customer = stream.between(1, self.sizes.customers);
        let at = self.time(stream);
        let mode = stream.pick_early(&["online", "direct", "telephone"]);
        let status = stream.below(STATUS_MAX + 1);
        write!(into, "{number}\t{at}\t{mode}\t{customer}\t{status}\t")?;
        push_cents(into, total)?;
        let staff = stream.between(1, STAFF);
        let warehouse = stream.between(1, self.sizes.warehouses);
        let delivery = stream.pick_early(&["standard", "express", "collection", "pallet"]);
        write!(into, "\t{staff}\t{warehouse}\t{delivery}\t{customer}\t{customer}\t")?;
        let length = stream.between(5, 60) as usize;
        text::push_sentence(into, stream, length);
        into.push('\n');
        Ok(())
    }

    fn customer(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let (first, last) = (stream.pick(text::FIRST_NAMES), stream.pick(text::LAST_NAMES));
        let language = stream.pick_early(CUSTOMER_LANGUAGES);
        let country = stream.pick(text::TOWNS).1;
        let credit = stream.between(1, 100) * 100;
        let staff = stream.between(1, STAFF);
        write!(into, "{number}\t{first}\t{last}\t{language}\t{country}\t{credit}.00\t")?;
        write!(into, "{first}.{last}.{number}@mail.example\t{staff}\t{}\t", self.time(stream))?;
        let class = stream.pick_early(&["occasional", "regular", "business", "prime"]);
        write!(into, "{class}\t")?;
        let length = stream.between(20, 90) as usize;
        text::push_sentence(into, stream, length);
        let mail = if stream.below(3) == 0 { 't' } else { 'f' };
        let born = stream.pick(&self.births);
        writeln!(into, "\t{born}\t{mail}\t{number}\t{number}")
    }

    fn address(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let owner = self.owner(number, stream);
        let at = self.time(stream);
        let (house, street) = (stream.between(1, 250), stream.pick(text::STREETS));
        let (town, country) = stream.pick(text::TOWNS);
        let code = stream.between(10_000, 99_999);
        writeln!(into, "{number}\t{owner}\t{at}\t{house}\t{street}\t{town}\t{country}\t{code}")
    }

    fn card(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let owner = self.owner(number, stream);
        let kind = stream.pick_early(&["debit", "credit", "company", "gift"]);
        let digits = stream.between(4_000_000_000_000_000, 5_999_999_999_999_999);
        let (expires, code) = (self.day(stream).to_owned(), stream.between(100, 999));
        let valid = if stream.below(20) == 0 { 'f' } else { 't' };
        writeln!(into, "{number}\t{owner}\t{kind}\t{digits}\t{expires}\t{valid}\t{code}")
    }

    fn logon(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let customer = stream.between(1, self.sizes.customers);
        writeln!(into, "{number}\t{customer}\t{}", self.time(stream))
    }

    fn inventory(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        if stream.below(10) == 0 {
            return Ok(());
        }
        let (product, warehouse) =
            ((number - 1) / self.sizes.warehouses + 1, (number - 1) % self.sizes.warehouses + 1);
        writeln!(into, "{product}\t{warehouse}\t{}", stream.between(100, 5_000))
    }

    fn product_name(&self, number: u64) -> String {
        let mut stream = Stream::of(self.seed, &[Table::ProductInformation as u64, number, 1]);
        let (quality, good) = (stream.pick(text::QUALITIES), stream.pick(text::GOODS));
        format!("{quality} {good} {}", stream.between(100, 999))
    }

    fn product(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        // The first number of the stream is the price: see `price_cents`.
        let cents = stream.between(199, 99_999);
        let category = stream.between(1, CATEGORIES);
        let (weight, supplier) = (stream.between(1, 5), stream.between(1, 200));
        let status = stream.pick_early(&["orderable", "planned", "under development", "obsolete"]);
        let name = self.product_name(number);
        write!(into, "{number}\t{name}\t{category}\t{weight}\t{supplier}\t{status}\t")?;
        push_cents(into, cents)?;
        into.push('\t');
        push_cents(into, cents * 8 / 10)?;
        writeln!(into, "\thttps://shop.example/catalog/{category}/{number}")
    }

    fn description(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let languages = LANGUAGES.len() as u64;
        let product = (number - 1) / languages + 1;
        let language = LANGUAGES[((number - 1) % languages) as usize];
        write!(into, "{product}\t{language}\t{}\t", self.product_name(product))?;
        for sentence in 0..stream.between(3, 8) {
            if sentence > 0 {
                into.push(' ');
            }
            let length = stream.between(60, 160) as usize;
            text::push_sentence(into, stream, length);
        }
        into.push('\n');
        Ok(())
    }

    fn warehouse(&self, number: u64, stream: &mut Stream, into: &mut String) -> std::fmt::Result {
        let town = stream.pick(text::TOWNS).0;
        writeln!(into, "{number}\tWarehouse {town} {number}\t{}", stream.between(1, 200))
    }
}

fn push_cents(into: &mut String, cents: u64) -> std::fmt::Result {
    write!(into, "{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests;
