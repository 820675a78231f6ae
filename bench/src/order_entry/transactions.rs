//! The transactions as a program does them: statement by statement over one connection.
//!
//! `bench/pgbench/*.sql` does the same; a test compares what both leave in the tables.

use super::mix::Transaction;
use super::rows::{CATEGORIES, ITEMS_MAX, STAFF, STATUS_OPEN_MAX};
use super::sizes::Sizes;
use crate::connection::Connection;
use crate::seed::Stream;
use anyhow::{Context, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

/// The statements that transactions are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sql {
    InsertCustomer,
    InsertAddress,
    InsertCard,
    InsertLogon,
    SelectCustomer,
    PreferAddress,
    PreferCard,
    SelectProduct,
    SelectCategory,
    SelectStock,
    InsertOrder,
    InsertItem,
    TakeStock,
    SumOrder,
    AdvanceOrder,
    OrderItems,
    CustomerOrders,
    SalesRepOrders,
    OpenOrders,
    Activity,
}

/// In the order of [`Sql`].
const TEXTS: [&str; 20] = [
    "INSERT INTO customers VALUES (nextval('customer_ids'), $1, $2, 'en', 'Austria', 1000, \
     $1 || '.' || $2 || '@mail.example', $3, now(), 'occasional', 'new customer', '1990-01-01', \
     false, 0, 0) RETURNING customer_id",
    "INSERT INTO addresses VALUES (nextval('address_ids'), $1, now(), $2, 'Station Road', 'Graz', \
     'Austria', '80100') RETURNING address_id",
    "INSERT INTO card_details VALUES (nextval('card_ids'), $1, 'debit', $2, '2030-01-01', true, 123) \
     RETURNING card_id",
    "INSERT INTO logon VALUES (nextval('logon_ids'), $1, now())",
    "SELECT first_name, last_name, credit_limit, email, preferred_address_id, preferred_card_id \
     FROM customers WHERE customer_id = $1",
    "UPDATE customers SET preferred_address_id = $2 WHERE customer_id = $1",
    "UPDATE customers SET preferred_card_id = $2 WHERE customer_id = $1",
    "SELECT p.product_name, p.list_price, d.translated_description, i.quantity_on_hand \
     FROM product_information p \
     JOIN product_descriptions d ON d.product_id = p.product_id AND d.language = 'en' \
     LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = $2 \
     WHERE p.product_id = $1",
    "SELECT p.product_id, p.product_name, p.list_price, i.quantity_on_hand \
     FROM product_information p \
     JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = $2 \
     WHERE p.category_id = $1 LIMIT 10",
    "SELECT p.list_price, i.quantity_on_hand FROM product_information p \
     LEFT JOIN inventories i ON i.product_id = p.product_id AND i.warehouse_id = $2 \
     WHERE p.product_id = $1",
    "INSERT INTO orders VALUES (nextval('order_ids'), now(), 'online', $1, 1, 0, $2, $3, 'standard', \
     $1, $1, 'ordered') RETURNING order_id",
    "INSERT INTO order_items SELECT $1, $2, $3, list_price, $4, NULL, 'none', 'new' \
     FROM product_information WHERE product_id = $3",
    "UPDATE inventories SET quantity_on_hand = quantity_on_hand - $3 \
     WHERE product_id = $1 AND warehouse_id = $2",
    "UPDATE orders SET order_status = 2, order_total = \
     (SELECT sum(unit_price * quantity) FROM order_items WHERE order_id = $1) WHERE order_id = $1",
    "UPDATE orders SET order_status = $2 + 1 WHERE order_id = (SELECT order_id FROM orders \
     WHERE warehouse_id = $1 AND order_status <= $2 ORDER BY order_status LIMIT 1 \
     FOR UPDATE SKIP LOCKED) RETURNING order_id",
    "SELECT line_item_id, product_id, unit_price, quantity FROM order_items WHERE order_id = $1",
    "SELECT o.order_id, o.order_date, o.order_total, i.line_item_id, i.product_id, i.unit_price, \
     i.quantity FROM (SELECT order_id, order_date, order_total FROM orders WHERE customer_id = $1 \
     ORDER BY order_date DESC LIMIT 5) o JOIN order_items i USING (order_id)",
    "SELECT order_id, order_date, order_total, customer_id FROM orders WHERE sales_rep_id = $1 \
     ORDER BY order_date DESC LIMIT 50",
    "SELECT order_id, order_date, order_status, order_total FROM orders \
     WHERE warehouse_id = $1 AND order_status <= $2 ORDER BY order_date LIMIT 100",
    "SELECT order_status, count(*), sum(order_total) FROM orders WHERE warehouse_id = $1 \
     GROUP BY order_status",
];

/// A connection with its statements prepared, and what it draws from.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    statements: Vec<Statement>,
    sizes: Sizes,
}

impl Session {
    /// Connects and prepares.
    ///
    /// # Errors
    /// What the server says; also of a database without order entry.
    pub async fn open(uri: &str) -> Result<Self> {
        let connection = Connection::open(uri).await?;
        let scale = connection.text("SELECT value FROM metadata WHERE name = 'scale'").await;
        let scale = scale.context("the database has no order entry: fill it first")?;
        let sizes = Sizes::of_scale(scale.parse().context("the scale of the data")?);
        let mut statements = Vec::with_capacity(TEXTS.len());
        for text in TEXTS {
            let statement = connection.client.prepare(text).await;
            statements.push(statement.with_context(|| format!("preparing {text}"))?);
        }
        Ok(Session { connection, statements, sizes })
    }

    /// Does a transaction.
    ///
    /// # Errors
    /// What the server says; the transaction is rolled back.
    pub async fn perform(&self, kind: Transaction, stream: &mut Stream) -> Result<(), Error> {
        let done = match kind {
            Transaction::RegisterCustomer => self.register(stream).await,
            Transaction::UpdateDetails => self.update_details(stream).await,
            Transaction::BrowseProducts => self.browse_products(stream).await,
            Transaction::OrderProducts => self.order(stream).await,
            Transaction::ProcessOrders => self.process(stream).await,
            Transaction::BrowseOrders => {
                let customer = self.customer(stream);
                self.rows(Sql::SelectCustomer, &[&customer]).await?;
                self.rows(Sql::CustomerOrders, &[&customer]).await.map(drop)
            }
            Transaction::SalesRep => {
                let staff = stream.between(1, STAFF) as i32;
                self.rows(Sql::SalesRepOrders, &[&staff]).await.map(drop)
            }
            Transaction::WarehouseOrders => {
                let (warehouse, open) = (self.warehouse(stream), STATUS_OPEN_MAX as i32);
                self.rows(Sql::OpenOrders, &[&warehouse, &open]).await.map(drop)
            }
            Transaction::WarehouseActivity => {
                self.rows(Sql::Activity, &[&self.warehouse(stream)]).await.map(drop)
            }
        };
        if done.is_err() && !self.connection.client.is_closed() {
            self.connection.client.batch_execute("ROLLBACK").await?;
        }
        done
    }

    /// Whether the connection is gone.
    pub fn is_closed(&self) -> bool {
        self.connection.client.is_closed()
    }

    async fn register(&self, stream: &mut Stream) -> Result<(), Error> {
        let (first, last) =
            (stream.pick(super::text::FIRST_NAMES), stream.pick(super::text::LAST_NAMES));
        let staff = stream.between(1, STAFF) as i32;
        self.begin().await?;
        let customer = self.id(Sql::InsertCustomer, &[first, last, &staff]).await?;
        let house = stream.between(1, 250) as i32;
        let address = self.id(Sql::InsertAddress, &[&customer, &house]).await?;
        let number = card_number(stream);
        let card = self.id(Sql::InsertCard, &[&customer, &number]).await?;
        self.run(Sql::PreferAddress, &[&customer, &address]).await?;
        self.run(Sql::PreferCard, &[&customer, &card]).await?;
        self.run(Sql::InsertLogon, &[&customer]).await?;
        self.commit().await
    }

    async fn update_details(&self, stream: &mut Stream) -> Result<(), Error> {
        let customer = self.customer(stream);
        let card = stream.below(2) == 0;
        self.begin().await?;
        self.rows(Sql::SelectCustomer, &[&customer]).await?;
        if card {
            let card = self.id(Sql::InsertCard, &[&customer, &card_number(stream)]).await?;
            self.run(Sql::PreferCard, &[&customer, &card]).await?;
        } else {
            let house = stream.between(1, 250) as i32;
            let address = self.id(Sql::InsertAddress, &[&customer, &house]).await?;
            self.run(Sql::PreferAddress, &[&customer, &address]).await?;
        }
        self.commit().await
    }

    async fn browse_products(&self, stream: &mut Stream) -> Result<(), Error> {
        self.rows(Sql::SelectCustomer, &[&self.customer(stream)]).await?;
        let warehouse = self.warehouse(stream);
        for _ in 0..3 {
            let product = stream.between(1, self.sizes.products) as i32;
            self.rows(Sql::SelectProduct, &[&product, &warehouse]).await?;
        }
        let category = stream.between(1, CATEGORIES) as i32;
        self.rows(Sql::SelectCategory, &[&category, &warehouse]).await.map(drop)
    }

    /// Products ascending, so that two orders never wait for each other in a circle.
    async fn order(&self, stream: &mut Stream) -> Result<(), Error> {
        let (customer, warehouse) = (self.customer(stream), self.warehouse(stream));
        let staff = stream.between(1, STAFF) as i32;
        self.begin().await?;
        self.rows(Sql::SelectCustomer, &[&customer]).await?;
        self.run(Sql::InsertLogon, &[&customer]).await?;
        let order = self.id(Sql::InsertOrder, &[&customer, &staff, &warehouse]).await?;
        let mut product = 0;
        for line in 1..=stream.between(1, ITEMS_MAX) as i32 {
            product += stream.between(1, self.sizes.products / ITEMS_MAX) as i32;
            let quantity = stream.between(1, 3) as i32;
            self.rows(Sql::SelectStock, &[&product, &warehouse]).await?;
            self.run(Sql::InsertItem, &[&order, &line, &product, &quantity]).await?;
            self.run(Sql::TakeStock, &[&product, &warehouse, &quantity]).await?;
        }
        self.run(Sql::SumOrder, &[&order]).await?;
        self.commit().await
    }

    async fn process(&self, stream: &mut Stream) -> Result<(), Error> {
        let (warehouse, open) = (self.warehouse(stream), STATUS_OPEN_MAX as i32);
        self.begin().await?;
        let moved = self.rows(Sql::AdvanceOrder, &[&warehouse, &open]).await?;
        if let Some(row) = moved.first() {
            let order: i64 = row.try_get(0)?;
            self.rows(Sql::OrderItems, &[&order]).await?;
        }
        self.commit().await
    }

    fn customer(&self, stream: &mut Stream) -> i64 {
        stream.between(1, self.sizes.customers) as i64
    }

    fn warehouse(&self, stream: &mut Stream) -> i32 {
        stream.between(1, self.sizes.warehouses) as i32
    }

    async fn begin(&self) -> Result<(), Error> {
        self.connection.client.batch_execute("BEGIN").await
    }

    async fn commit(&self) -> Result<(), Error> {
        self.connection.client.batch_execute("COMMIT").await
    }

    async fn rows(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Error> {
        self.connection.client.query(&self.statements[sql as usize], values).await
    }

    async fn run(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<(), Error> {
        self.connection.client.execute(&self.statements[sql as usize], values).await.map(drop)
    }

    /// The id that an `INSERT … RETURNING` gave out.
    async fn id(&self, sql: Sql, values: &[&(dyn ToSql + Sync)]) -> Result<i64, Error> {
        let row = self.connection.client.query_one(&self.statements[sql as usize], values).await?;
        row.try_get(0)
    }
}

fn card_number(stream: &mut Stream) -> i64 {
    stream.between(4_000_000_000_000_000, 5_999_999_999_999_999) as i64
}
