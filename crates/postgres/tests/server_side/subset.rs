//! A subset of the rows is kept: what refers to rows that go goes as well, and no byte of it is left.

use crate::cluster::*;
use crate::image::{check_stopped, scope};
use crate::masking::{betrayers, check, finish, mask, one, source, start};
use offshoot_postgres::check_image::check_running;
use offshoot_postgres::server::{Server, StopMode};

/// Customers with a boss each, orders by partitions, and what refers to them. What goes has a canary. No trigger may act.
const SHOP: &str = "CREATE TABLE public.regions (id int PRIMARY KEY, name text);
    CREATE TABLE public.customers (id int PRIMARY KEY, region int REFERENCES public.regions, \
      boss int REFERENCES public.customers, name text);
    CREATE TABLE public.orders (id int PRIMARY KEY, customer int REFERENCES public.customers, day date) \
      PARTITION BY RANGE (id);
    CREATE TABLE public.orders_1 PARTITION OF public.orders FOR VALUES FROM (MINVALUE) TO (1500);
    CREATE TABLE public.orders_2 PARTITION OF public.orders FOR VALUES FROM (1500) TO (MAXVALUE);
    CREATE TABLE public.items (order_id int REFERENCES public.orders, n int, text text, PRIMARY KEY (order_id, n));
    CREATE TABLE public.logs (id int PRIMARY KEY, line text);
    CREATE TABLE public.untouched (id int PRIMARY KEY, line text);
    INSERT INTO public.regions SELECT i, 'region ' || i FROM generate_series(1, 9) i;
    INSERT INTO public.customers SELECT i, 1 + i % 9, CASE WHEN i > 20 THEN i / 7 END, 'name ' || i
      FROM generate_series(1, 1000) i;
    INSERT INTO public.orders SELECT i, CASE WHEN i % 11 > 0 THEN 1 + i % 1000 END, date '2025-01-01' + i % 700
      FROM generate_series(1, 3000) i;
    INSERT INTO public.items SELECT 1 + i % 3000, i / 3000, 'item' FROM generate_series(0, 8999) i;
    INSERT INTO public.logs SELECT i, 'line ' || i FROM generate_series(1, 50) i;
    INSERT INTO public.untouched SELECT i, 'line ' || i FROM generate_series(1, 50) i;
    CREATE MATERIALIZED VIEW public.busy AS SELECT customer, count(*) AS n FROM public.orders GROUP BY 1;
    CREATE FUNCTION public.never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''a trigger acts''; END';
    CREATE TABLE public.expected AS
      WITH RECURSIVE gone AS (
        SELECT id FROM public.customers WHERE region = 4 OR id NOT IN (SELECT customer FROM public.orders WHERE customer > 0)
        UNION SELECT c.id FROM public.customers c JOIN gone g ON c.boss = g.id)
      SELECT 'customer' AS what, id, 0 AS n FROM public.customers WHERE id NOT IN (SELECT id FROM gone)
      UNION ALL SELECT 'order', id, 0 FROM public.orders
        WHERE day >= '2026-01-01' AND (customer IS NULL OR customer NOT IN (SELECT id FROM gone));
    INSERT INTO public.expected SELECT 'item', order_id, n FROM public.items
      WHERE order_id IN (SELECT id FROM public.expected WHERE what = 'order');
    UPDATE public.customers SET name = 'Quoxiz ' || id WHERE id NOT IN (SELECT id FROM public.expected WHERE what = 'customer');
    UPDATE public.items SET text = 'Quoxiz' WHERE (order_id, n) NOT IN (SELECT id, n FROM public.expected WHERE what = 'item');
    CREATE TRIGGER never BEFORE DELETE OR INSERT OR UPDATE ON public.items FOR EACH ROW EXECUTE FUNCTION public.never();
    ALTER TABLE public.items ENABLE ALWAYS TRIGGER never;
    ANALYZE;";

const RULES: &str = "
version: 1
key: main
tables:
  customers:
    keep_rows: \"region <> 4 AND id IN (SELECT customer FROM public.orders)\"
    columns: {name: character-mapping}
  orders:
    keep_rows: \"orders.day >= '2026-01-01'\"
  logs:
    keep_rows: \"id > 0\"
";

/// What the source expects but the copy has not, and what it has besides.
const DIFFERENCES: &str = "WITH there AS (
      SELECT 'customer' AS what, id, 0 AS n FROM public.customers UNION ALL SELECT 'order', id, 0 FROM public.orders
      UNION ALL SELECT 'item', order_id, n FROM public.items)
    SELECT (SELECT count(*) FROM (TABLE there EXCEPT TABLE public.expected) a)
      + (SELECT count(*) FROM (TABLE public.expected EXCEPT TABLE there) b)";

fn check_rows(server: &Server) {
    let mut shop = server.connect_to("shop").unwrap();
    assert_eq!(one(&mut shop, DIFFERENCES), "0");
    for (sql, wanted) in [
        ("SELECT count(*) BETWEEN 100 AND 900 FROM public.customers", "t"),
        ("SELECT count(*) > 100 FROM public.items", "t"),
        ("SELECT count(*) FROM public.regions", "9"),
        ("SELECT count(*) FROM public.logs", "50"),
        ("SELECT count(*) FROM public.untouched", "50"),
        ("SELECT (SELECT sum(n) FROM public.busy) = (SELECT count(*) FROM public.orders)", "t"),
        ("SELECT count(*) FROM public.customers WHERE name LIKE 'name %'", "0"),
        ("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'offshoot%'", "0"),
    ] {
        assert_eq!(one(&mut shop, sql), wanted, "{sql}");
    }
}

#[test]
fn what_refers_to_rows_that_go_goes_as_well() {
    for bin in bin_dirs() {
        let scratch = Scratch::new();
        let data = source(&scratch, &bin, SHOP);
        let mut server = start(&scratch, &bin, &data, "subset");
        assert_eq!(check(&server, RULES).problems, Vec::<String>::new());
        let done = mask(&server, RULES).unwrap();
        check_rows(&server);
        let mut shop = server.connect_to("shop").unwrap();
        for (table, before) in [("customers", "1000"), ("orders", "3000"), ("logs", "50")] {
            let name = format!("public.{table}");
            let facts = done.facts.tables.iter().find(|one| one.name == name).unwrap();
            assert_eq!(facts.rows_before.to_string(), before, "{table}");
            let left = one(&mut shop, &format!("SELECT count(*) FROM {name}"));
            assert_eq!(facts.rows_after.to_string(), left, "{table}");
        }
        drop(shop);
        let removed = done.facts.removed.iter().find(|one| one.what.contains("public.items"));
        assert!(
            removed.and_then(|one| one.count).is_some_and(|count| count > 0),
            "{:?}",
            done.facts
        );
        finish(&mut server);
        assert_eq!(betrayers(&data), Vec::<String>::new(), "{}", bin.display());
        let all = scope(&bin, &data, |_| None);
        assert!(check_stopped(&bin, &data, &all).unwrap().sound());
        let mut server = start(&scratch, &bin, &data, "opened");
        check_rows(&server);
        let found = check_running(&server, &all, DEADLINE, &mut |_| Ok(())).unwrap();
        assert!(found.sound(), "{found:?}");
        server.stop(StopMode::Immediate, DEADLINE).unwrap();
    }
}

#[test]
fn conditions_that_cannot_be_asked_are_refused_first() {
    let bin = bin_dirs().remove(0);
    let scratch = Scratch::new();
    let data = source(&scratch, &bin, SHOP);
    let server = start(&scratch, &bin, &data, "refused");
    for (rules, wanted) in [
        ("customers: {keep_rows: nowhere = 1}", vec!["public.customers", "keep_rows", "nowhere"]),
        ("customers: {keep_rows: id}", vec!["public.customers", "keep_rows"]),
        (
            "\"*.custom*\": {keep_rows: id > 1}\n  \"public.*ers\": {keep_rows: id > 2}",
            vec!["public.customers", "which rows stay"],
        ),
    ] {
        let rules = format!("version: 1\nkey: main\ntables:\n  {rules}\n");
        let problems = check(&server, &rules).problems.join("; ");
        for word in wanted {
            assert!(problems.contains(word), "{rules}: {problems}");
        }
        mask(&server, &rules).unwrap_err();
    }
}
