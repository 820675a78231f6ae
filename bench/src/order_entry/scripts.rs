//! The transactions as pgbench scripts: an independent driver over the same data.

use super::mix::{Mix, Transaction};
use super::sizes::Sizes;
use anyhow::{Context, Result};
use std::path::Path;

const SCRIPTS: [(Transaction, &str); 9] = [
    (Transaction::RegisterCustomer, include_str!("../../pgbench/register_customer.sql")),
    (Transaction::UpdateDetails, include_str!("../../pgbench/update_details.sql")),
    (Transaction::BrowseProducts, include_str!("../../pgbench/browse_products.sql")),
    (Transaction::OrderProducts, include_str!("../../pgbench/order_products.sql")),
    (Transaction::ProcessOrders, include_str!("../../pgbench/process_orders.sql")),
    (Transaction::BrowseOrders, include_str!("../../pgbench/browse_orders.sql")),
    (Transaction::SalesRep, include_str!("../../pgbench/sales_rep.sql")),
    (Transaction::WarehouseOrders, include_str!("../../pgbench/warehouse_orders.sql")),
    (Transaction::WarehouseActivity, include_str!("../../pgbench/warehouse_activity.sql")),
];

/// Writes the scripts into a directory, one file for each transaction.
///
/// # Errors
/// What the operating system says.
pub fn write_scripts(into: &Path) -> Result<()> {
    std::fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
    for (transaction, text) in SCRIPTS {
        let path = into.join(format!("{}.sql", transaction.name()));
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// pgbench's arguments for a mix over data of a scale, with the scripts in `directory`.
pub fn pgbench_arguments(mix: Mix, sizes: &Sizes, directory: &Path) -> Vec<String> {
    let mut arguments = vec!["--no-vacuum".to_owned(), "--protocol=prepared".to_owned()];
    for (name, value) in [
        ("customers", sizes.customers),
        ("products", sizes.products),
        ("warehouses", sizes.warehouses),
    ] {
        arguments.push(format!("--define={name}={value}"));
    }
    for (transaction, weight) in Transaction::ALL.into_iter().zip(mix.weights()) {
        if weight > 0 {
            let script = directory.join(format!("{}.sql", transaction.name()));
            arguments.push(format!("--file={}@{weight}", script.display()));
        }
    }
    arguments
}
