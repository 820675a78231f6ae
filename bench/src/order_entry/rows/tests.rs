use super::*;

fn table_text(rows: &Rows, table: Table) -> String {
    let mut text = String::new();
    for number in 1..=rows.count(table) {
        rows.push(table, number, &mut text);
    }
    text
}

#[test]
fn a_seed_makes_the_same_rows_in_any_order_and_another_seed_others() {
    let sizes = Sizes::of_scale(0.001);
    let (rows, again, other) = (Rows::new(7, sizes), Rows::new(7, sizes), Rows::new(8, sizes));
    for table in Table::ALL {
        let text = table_text(&rows, table);
        let mut backwards: Vec<String> = Vec::new();
        for number in (1..=again.count(table)).rev() {
            let mut row = String::new();
            again.push(table, number, &mut row);
            backwards.push(row);
        }
        backwards.reverse();
        assert_eq!(text, backwards.concat(), "{}", table.name());
        assert_ne!(text, table_text(&other, table), "{}", table.name());
    }
}

#[test]
fn the_rows_of_a_seed_never_change() {
    let rows = Rows::new(7, Sizes::of_scale(0.001));
    let sums: Vec<String> = Table::ALL
        .iter()
        .map(|table| {
            let text = table_text(&rows, *table);
            let bits = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            format!("{} {bits:016x}", table.name())
        })
        .collect();
    assert_eq!(sums, FROZEN, "results of other versions can no longer be compared");
}

const FROZEN: [&str; 10] = [
    "order_items b875cf75a00107b2",
    "orders 87c74a7dafcc58c0",
    "customers 0ed56048e3a70d9f",
    "addresses 449af7982b26972b",
    "card_details e8a816d3b2e65c3f",
    "logon c4fb521cc1590204",
    "inventories a6529b959cbf96de",
    "product_information ce4c8e229db00624",
    "product_descriptions 8116af2aed77d47a",
    "warehouses 98218691b4c7e54e",
];

#[test]
fn the_text_compresses_as_real_text_does() {
    let rows = Rows::new(7, Sizes::of_scale(0.01));
    for table in [Table::Customers, Table::Addresses, Table::Orders, Table::ProductDescriptions] {
        let text = table_text(&rows, table);
        let pieces = text.as_bytes().chunks_exact(8_192);
        let raw = pieces.len() * 8_192;
        let packed: usize = pieces.map(|piece| zstd::bulk::compress(piece, 1).unwrap().len()).sum();
        let ratio = raw as f64 / packed as f64;
        assert!((2.0..4.0).contains(&ratio), "{}: {ratio:.2}", table.name());
    }
}

#[test]
fn an_order_is_the_sum_of_its_items() {
    let rows = Rows::new(7, Sizes::of_scale(0.001));
    for number in 1..=200 {
        let (mut order, mut items) = (String::new(), String::new());
        rows.push(Table::Orders, number, &mut order);
        rows.push(Table::OrderItems, number, &mut items);
        let total: f64 = order.split('\t').nth(5).unwrap().parse().unwrap();
        let sum: f64 = items
            .lines()
            .map(|line| {
                let field = |index| line.split('\t').nth(index).unwrap().parse::<f64>().unwrap();
                field(3) * field(4)
            })
            .sum();
        assert!((total - sum).abs() < 0.005, "order {number}: {total} and {sum}");
    }
}
