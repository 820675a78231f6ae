//! Tables, indexes and sequences. The usual shape of order entry, with our own names and text.

/// Tables without indexes, so that they load quickly. `inventories` is nearly all free space: every
/// order updates rows, and each row should be on a page of its own.
pub const TABLES: &str = "
CREATE TABLE metadata (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE customers (
    customer_id bigint NOT NULL, first_name text NOT NULL, last_name text NOT NULL,
    language text NOT NULL, country text NOT NULL, credit_limit numeric(9,2) NOT NULL,
    email text NOT NULL, account_manager_id integer NOT NULL, customer_since timestamptz NOT NULL,
    customer_class text NOT NULL, suggestions text NOT NULL, date_of_birth date NOT NULL,
    wants_mail boolean NOT NULL, preferred_address_id bigint NOT NULL,
    preferred_card_id bigint NOT NULL);
CREATE TABLE addresses (
    address_id bigint NOT NULL, customer_id bigint NOT NULL, created_at timestamptz NOT NULL,
    house_number integer NOT NULL, street text NOT NULL, town text NOT NULL, country text NOT NULL,
    post_code text NOT NULL);
CREATE TABLE card_details (
    card_id bigint NOT NULL, customer_id bigint NOT NULL, card_type text NOT NULL,
    card_number bigint NOT NULL, expires_on date NOT NULL, is_valid boolean NOT NULL,
    security_code integer NOT NULL);
CREATE TABLE warehouses (
    warehouse_id integer NOT NULL, warehouse_name text NOT NULL, location_id integer NOT NULL);
CREATE TABLE product_information (
    product_id integer NOT NULL, product_name text NOT NULL, category_id integer NOT NULL,
    weight_class integer NOT NULL, supplier_id integer NOT NULL, product_status text NOT NULL,
    list_price numeric(9,2) NOT NULL, min_price numeric(9,2) NOT NULL, catalog_url text NOT NULL);
CREATE TABLE product_descriptions (
    product_id integer NOT NULL, language text NOT NULL, translated_name text NOT NULL,
    translated_description text NOT NULL);
CREATE TABLE inventories (
    product_id integer NOT NULL, warehouse_id integer NOT NULL, quantity_on_hand integer NOT NULL)
    WITH (fillfactor = 10);
CREATE TABLE orders (
    order_id bigint NOT NULL, order_date timestamptz NOT NULL, order_mode text NOT NULL,
    customer_id bigint NOT NULL, order_status integer NOT NULL, order_total numeric(12,2) NOT NULL,
    sales_rep_id integer NOT NULL, warehouse_id integer NOT NULL, delivery_type text NOT NULL,
    delivery_address_id bigint NOT NULL, card_id bigint NOT NULL, note text NOT NULL);
CREATE TABLE order_items (
    order_id bigint NOT NULL, line_item_id integer NOT NULL, product_id integer NOT NULL,
    unit_price numeric(9,2) NOT NULL, quantity integer NOT NULL, dispatched_at timestamptz,
    gift_wrap text NOT NULL, condition text NOT NULL);
CREATE TABLE logon (
    logon_id bigint NOT NULL, customer_id bigint NOT NULL, logged_on_at timestamptz NOT NULL);
CREATE SEQUENCE customer_ids CACHE 100;
CREATE SEQUENCE address_ids CACHE 100;
CREATE SEQUENCE card_ids CACHE 100;
CREATE SEQUENCE order_ids CACHE 100;
CREATE SEQUENCE logon_ids CACHE 100;
";

/// Keys and the usual secondary indexes, each a separate statement so that they can be built in
/// parallel.
pub const INDEXES: &[&str] = &[
    "ALTER TABLE order_items ADD PRIMARY KEY (order_id, line_item_id)",
    "ALTER TABLE customers ADD PRIMARY KEY (customer_id)",
    "ALTER TABLE orders ADD PRIMARY KEY (order_id)",
    "ALTER TABLE addresses ADD PRIMARY KEY (address_id)",
    "ALTER TABLE card_details ADD PRIMARY KEY (card_id)",
    "ALTER TABLE logon ADD PRIMARY KEY (logon_id)",
    "ALTER TABLE inventories ADD PRIMARY KEY (product_id, warehouse_id)",
    "ALTER TABLE warehouses ADD PRIMARY KEY (warehouse_id)",
    "ALTER TABLE product_information ADD PRIMARY KEY (product_id)",
    "ALTER TABLE product_descriptions ADD PRIMARY KEY (product_id, language)",
    "CREATE INDEX order_items_product ON order_items (product_id)",
    "CREATE INDEX customers_email ON customers (email)",
    "CREATE INDEX customers_name ON customers (last_name, first_name)",
    "CREATE INDEX customers_account_manager ON customers (account_manager_id)",
    "CREATE INDEX customers_date_of_birth ON customers (date_of_birth)",
    "CREATE INDEX addresses_customer ON addresses (customer_id)",
    "CREATE INDEX card_details_customer ON card_details (customer_id)",
    "CREATE INDEX orders_customer ON orders (customer_id)",
    "CREATE INDEX orders_date ON orders (order_date)",
    "CREATE INDEX orders_sales_rep ON orders (sales_rep_id)",
    "CREATE INDEX orders_warehouse ON orders (warehouse_id, order_status)",
    "CREATE INDEX logon_customer ON logon (customer_id)",
    "CREATE INDEX inventories_warehouse ON inventories (warehouse_id)",
    "CREATE INDEX warehouses_location ON warehouses (location_id)",
    "CREATE INDEX product_information_category ON product_information (category_id)",
    "CREATE INDEX product_information_supplier ON product_information (supplier_id)",
    "CREATE INDEX product_descriptions_name ON product_descriptions (translated_name)",
];

/// A table that is generated, in the order in which they are loaded: the largest first, so that no
/// connection is left alone with one at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Table {
    /// Written with its order: the rows of an order go together.
    OrderItems,
    /// Of a customer, with as many items as its stream says.
    Orders,
    /// Who buys.
    Customers,
    /// Where they live.
    Addresses,
    /// How they pay.
    CardDetails,
    /// When they came.
    Logon,
    /// How much of a product a warehouse has.
    Inventories,
    /// What is sold.
    ProductInformation,
    /// In the words of a language.
    ProductDescriptions,
    /// Where it is kept.
    Warehouses,
}

impl Table {
    /// All of them.
    pub const ALL: [Table; 10] = [
        Table::OrderItems,
        Table::Orders,
        Table::Customers,
        Table::Addresses,
        Table::CardDetails,
        Table::Logon,
        Table::Inventories,
        Table::ProductInformation,
        Table::ProductDescriptions,
        Table::Warehouses,
    ];

    /// Its name in the database.
    pub fn name(self) -> &'static str {
        match self {
            Table::OrderItems => "order_items",
            Table::Orders => "orders",
            Table::Customers => "customers",
            Table::Addresses => "addresses",
            Table::CardDetails => "card_details",
            Table::Logon => "logon",
            Table::Inventories => "inventories",
            Table::ProductInformation => "product_information",
            Table::ProductDescriptions => "product_descriptions",
            Table::Warehouses => "warehouses",
        }
    }
}
