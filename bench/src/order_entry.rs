//! Order entry: customers order products from warehouses.
//!
//! The usual shape of such benchmarks, with our own schema, generator and transactions. The data is
//! the same for the same scale and seed, on every machine.

mod fill;
mod mix;
mod rows;
mod schema;
mod scripts;
mod sizes;
mod text;
mod transactions;

pub use fill::{FillPlan, Filled, fill};
pub use mix::{Mix, Transaction};
pub use scripts::{pgbench_arguments, write_scripts};
pub use sizes::Sizes;
pub use transactions::Session;

#[cfg(test)]
mod tests;
