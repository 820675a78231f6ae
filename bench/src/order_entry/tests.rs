//! Order entry on a real server: generated, loaded by both drivers, and what both leave behind.

use super::*;
use crate::connection::{Connection, runtime};
use crate::driver::{LoadPlan, drive};
use offshoot_os::process;
use offshoot_rig::{Scratch, Source, SourceOptions, find_newest};
use std::collections::BTreeMap;
use std::time::Duration;

const SCALE: f64 = 0.002;

/// What a load changed, or the present state.
type Counts = BTreeMap<String, i64>;

/// Rows of every table that a load changes, and all that is in stock.
async fn counts(db: &Connection) -> Counts {
    let mut all = Counts::new();
    for table in ["customers", "addresses", "card_details", "orders", "order_items", "logon"] {
        let count = db.number(&format!("SELECT count(*) FROM {table}")).await.unwrap();
        all.insert(table.to_owned(), count);
    }
    let stock = "SELECT sum(quantity_on_hand)::bigint FROM inventories";
    all.insert("stock".to_owned(), db.number(stock).await.unwrap());
    all
}

/// What a driver did must be in the tables, exactly where a transaction always does the same, and
/// within five standard deviations where it draws.
fn check_effects(driver: &str, done: &Counts, before: &Counts, after: &Counts) {
    let changed = |table: &str| after[table] - before[table];
    let did = |kind: &str| done[kind];
    let (registered, ordered) = (did("register_customer"), did("order_products"));
    assert_eq!(changed("customers"), registered, "{driver}: customers");
    assert_eq!(changed("orders"), ordered, "{driver}: orders");
    assert_eq!(changed("logon"), registered + ordered, "{driver}: logons");
    let details = changed("addresses") + changed("card_details");
    assert_eq!(details, 2 * registered + did("update_details"), "{driver}: addresses and cards");

    let near = |what: &str, seen: f64, want: f64, deviation: f64, count: i64| {
        let noise = 5.0 * deviation / (count as f64).sqrt();
        assert!(
            (seen - want).abs() < noise,
            "{driver}: {what}: {seen:.3}, not {want} ± {noise:.3}"
        );
    };
    let items = changed("order_items");
    near("items of an order", items as f64 / ordered as f64, 3.0, 1.42, ordered);
    // Nine of ten products are in a warehouse, one to three pieces are taken.
    let taken = -changed("stock") as f64 / items as f64;
    near("pieces of an item", taken, 1.8, 1.0, items);

    let total: i64 = done.values().sum();
    let weights = Mix::OltpQueries.weights();
    for (kind, weight) in Transaction::ALL.into_iter().zip(weights) {
        let share = weight as f64 / weights.iter().sum::<u64>() as f64;
        let seen = did(kind.name()) as f64 / total as f64;
        near(kind.name(), seen, share, (share * (1.0 - share)).sqrt(), total);
    }
}

/// Transactions of each script in what pgbench prints.
fn pgbench_counts(text: &str) -> Counts {
    let (mut counts, mut script) = (Counts::new(), String::new());
    for line in text.lines() {
        if let Some((_, path)) =
            line.split_once("SQL script ").and_then(|(_, l)| l.split_once(": "))
        {
            let name = path.rsplit('/').next().unwrap().trim_end_matches(".sql");
            script = name.to_owned();
        } else if let Some((count, _)) =
            line.strip_prefix(" - ").and_then(|line| line.split_once(" transactions ("))
        {
            counts.insert(script.clone(), count.parse().unwrap());
        }
    }
    counts
}

/// What must hold for any order, however it was made.
async fn check_books(db: &Connection) {
    let wrong = "SELECT count(*) FROM orders o WHERE order_total <> \
        (SELECT sum(unit_price * quantity) FROM order_items i WHERE i.order_id = o.order_id)";
    assert_eq!(db.number(wrong).await.unwrap(), 0, "orders that are not the sum of their items");
    let orphans = "SELECT count(*) FROM customers c WHERE NOT EXISTS \
        (SELECT FROM addresses a WHERE a.customer_id = c.customer_id)";
    assert_eq!(db.number(orphans).await.unwrap(), 0, "customers without an address");
}

#[test]
fn both_drivers_leave_the_same_picture() {
    let scratch = Scratch::new("order-entry").unwrap();
    let options = SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] };
    let source = Source::start(&scratch, options).unwrap();
    let uri = source.superuser_uri("postgres");
    let filled =
        fill(&FillPlan { uri: uri.clone(), scale: SCALE, seed: 7, connections: 2 }).unwrap();
    assert_eq!(filled.sizes, Sizes::of_scale(SCALE));

    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let db = Connection::open(&uri).await.unwrap();
        check_books(&db).await;
        let start = counts(&db).await;
        assert_eq!(start["customers"], filled.sizes.customers as i64);
        assert_eq!(start["orders"], filled.sizes.orders as i64);

        let plan = LoadPlan::closed_loop(Mix::OltpQueries, 4, 3, 7);
        let felt = drive(std::slice::from_ref(&uri), &plan).await.unwrap();
        assert_eq!(felt.errors, 0, "{:?}", felt.error_texts);
        assert_eq!(felt.by_kind.len(), Transaction::ALL.len(), "each kind was done");
        let done = |(kind, latency): (&&str, &crate::driver::Latency)| {
            ((*kind).to_owned(), latency.count as i64)
        };
        let ours = felt.by_kind.iter().map(done).collect();
        let after_ours = counts(&db).await;
        check_effects("ours", &ours, &start, &after_ours);

        let scripts = scratch.path().join("scripts");
        write_scripts(&scripts).unwrap();
        let arguments = pgbench_arguments(plan.mix, &filled.sizes, &scripts);
        let spec = source.pgbench(&["--client=4", "--time=3", "--random-seed=7"]).args(arguments);
        let output = process::run(&spec, Duration::from_secs(60)).unwrap();
        assert!(output.success(), "{}", output.stderr_text());
        let text = output.stdout_text();
        let theirs = pgbench_counts(&text);
        assert_eq!(theirs.len(), Transaction::ALL.len(), "{text}");
        check_effects("pgbench", &theirs, &after_ours, &counts(&db).await);
        check_books(&db).await;
    });
}
