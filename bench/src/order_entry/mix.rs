//! The transactions and how often each is done.

use crate::seed::Stream;
use serde::Serialize;

/// A business transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transaction {
    /// A new customer with address and card.
    RegisterCustomer,
    /// Another address or card of a customer.
    UpdateDetails,
    /// Products by number and by category.
    BrowseProducts,
    /// An order of one to five items, taken from a warehouse.
    OrderProducts,
    /// The oldest open order of a warehouse moves on.
    ProcessOrders,
    /// A customer's last orders with their items.
    BrowseOrders,
    /// The last orders of a sales representative.
    SalesRep,
    /// The open orders of a warehouse.
    WarehouseOrders,
    /// What a warehouse did, by status of its orders.
    WarehouseActivity,
}

impl Transaction {
    /// All of them.
    pub const ALL: [Transaction; 9] = [
        Transaction::RegisterCustomer,
        Transaction::UpdateDetails,
        Transaction::BrowseProducts,
        Transaction::OrderProducts,
        Transaction::ProcessOrders,
        Transaction::BrowseOrders,
        Transaction::SalesRep,
        Transaction::WarehouseOrders,
        Transaction::WarehouseActivity,
    ];

    /// Its name in results, and of its pgbench script.
    pub fn name(self) -> &'static str {
        match self {
            Transaction::RegisterCustomer => "register_customer",
            Transaction::UpdateDetails => "update_details",
            Transaction::BrowseProducts => "browse_products",
            Transaction::OrderProducts => "order_products",
            Transaction::ProcessOrders => "process_orders",
            Transaction::BrowseOrders => "browse_orders",
            Transaction::SalesRep => "sales_rep",
            Transaction::WarehouseOrders => "warehouse_orders",
            Transaction::WarehouseActivity => "warehouse_activity",
        }
    }
}

/// How often each transaction is done: weights in the order of [`Transaction::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// The usual mix: 15 register, 10 update, 50 browse, 40 order, 5 process, 5 browse orders.
    Oltp,
    /// Browsing and queries, without a write.
    Read,
    /// Mostly orders.
    Write,
    /// The usual mix and 2 of each of the three queries.
    OltpQueries,
}

impl Mix {
    /// The weights.
    pub fn weights(self) -> [u64; 9] {
        match self {
            Mix::Oltp => [15, 10, 50, 40, 5, 5, 0, 0, 0],
            Mix::Read => [0, 0, 70, 0, 0, 24, 2, 2, 2],
            Mix::Write => [10, 10, 5, 70, 5, 0, 0, 0, 0],
            Mix::OltpQueries => [15, 10, 50, 40, 5, 5, 2, 2, 2],
        }
    }

    /// Its name, as options take it.
    pub fn name(self) -> &'static str {
        match self {
            Mix::Oltp => "oltp",
            Mix::Read => "read",
            Mix::Write => "write",
            Mix::OltpQueries => "oltp-queries",
        }
    }

    /// Draws the next transaction.
    pub fn draw(self, stream: &mut Stream) -> Transaction {
        let weights = self.weights();
        let mut left = stream.below(weights.iter().sum());
        for (transaction, weight) in Transaction::ALL.into_iter().zip(weights) {
            if left < weight {
                return transaction;
            }
            left -= weight;
        }
        unreachable!("the draw is below the sum of the weights")
    }
}
