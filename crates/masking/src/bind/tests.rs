use super::*;
use crate::facts::TypeClass;
use crate::{Outcome, Row};

pub(crate) fn column(name: &str, class: TypeClass) -> ColumnFacts {
    ColumnFacts {
        name: name.into(),
        class,
        type_name: "text".into(),
        chars_max: None,
        nullable: true,
        unique: false,
        references: false,
        generated: false,
    }
}

fn customers() -> TableFacts {
    TableFacts {
        schema: "public".into(),
        name: "customers".into(),
        columns: vec![
            column("id", TypeClass::Integer { bytes: 4 }),
            column("email", TypeClass::Text),
            column("born", TypeClass::Date),
            column("work_email", TypeClass::Text),
        ],
    }
}

fn bind(rules: &str, tables: &[TableFacts]) -> Bound {
    let rules = format!("version: 1\nkey: main\ntables:\n{rules}");
    Ruleset::parse(&rules).expect("rules are read").bind(tables, &MaskingKey::new(b"secret"))
}

#[test]
fn a_ruleset_masks_what_it_names() {
    let rules = "  customers: {columns: {email: email, born: {algorithm: date-shift, min: -30d, max: 30d, per: id}}}
  'public.audit_*': {empty: true}
";
    let bound = bind(rules, &[customers()]);
    assert_eq!(bound.problems, Vec::<String>::new());
    assert_eq!(bound.idle, ["public.audit_*: no such table"]);
    assert_eq!(bound.unruled.len(), 1, "{:?}", bound.unruled);
    let Treatment::Mask { condition: None, keep_rows: None, columns } = &bound.tables[0].treatment
    else {
        panic!("the table is masked");
    };
    let row = Row { values: &[Some("7"), Some("maria@firm.test"), Some("1990-02-28"), None] };
    let masks: Vec<String> = columns
        .iter()
        .map(|column| {
            let mut out = String::new();
            let Mask::Values(mask) = &column.mask else { panic!("values are masked") };
            let value = row.values[column.column].expect("it is there");
            assert_eq!(mask.mask(value, &row, &mut out), Ok(Outcome::Value));
            assert_ne!(out, value);
            out
        })
        .collect();
    assert!(masks[0].ends_with("@example.com"), "{masks:?}");
    assert!(masks[1].starts_with("1990-0"), "{masks:?}");
}

/// The problems of one rule for the column `c` of a table.
fn problems(change: impl Fn(&mut ColumnFacts), rule: &str, condition: &str) -> String {
    let mut c = column("c", TypeClass::Text);
    change(&mut c);
    let table = TableFacts {
        schema: "public".into(),
        name: "t".into(),
        columns: vec![c, column("id", TypeClass::Integer { bytes: 8 })],
    };
    let rules = format!("  t: {{columns: {{c: {rule}}}{condition}}}\n");
    let bound = bind(&rules, &[table]);
    assert_eq!(bound.problems.is_empty(), !bound.tables.is_empty(), "{:?}", bound.problems);
    bound.problems.join("; ")
}

#[test]
fn what_does_not_fit_is_a_problem() {
    const WHERE: &str = ", where: \"id > 5\"";
    let any_case = |c: &mut ColumnFacts| (c.unique, c.type_name) = (true, "citext".into());
    assert!(problems(any_case, "{algorithm: fpe, alphabet: alphanumeric}", "").contains("in case"));
    let int = |c: &mut ColumnFacts| c.class = TypeClass::Integer { bytes: 4 };
    let short = |c: &mut ColumnFacts| c.chars_max = Some(10);
    let unique = |c: &mut ColumnFacts| c.unique = true;
    let joins = |c: &mut ColumnFacts| c.references = true;
    assert!(problems(int, "email", "").contains("does not fit; the column is an integer"));
    assert!(problems(short, "email", "").contains("the column takes 10"));
    assert!(problems(short, "tokenize", "").contains("longer than its value"));
    assert!(problems(|c| c.nullable = false, "'null'", "").contains("may be NULL"));
    assert!(problems(|c| c.nullable = false, "[email, 'null']", "").contains("may be NULL"));
    assert!(problems(unique, "full-name", "").contains("keeps values apart"));
    assert!(problems(unique, "[full-name, email]", "").contains("keeps values apart"));
    assert!(problems(unique, "fpe", WHERE).contains("leave `where` out"));
    assert!(problems(joins, "email", WHERE).contains("leave `where` out"));
    assert!(problems(joins, "{algorithm: city, per: id}", "").contains("leave `per` out"));
    assert!(problems(|_| {}, "{algorithm: city, per: gone}", "").contains("'gone'"));
    assert!(problems(|c| c.generated = true, "email", "").contains("computes it"));
    assert!(problems(int, "{algorithm: constant, value: x}", "").contains("does not fit"));
    for fine in ["email", "fpe", "character-mapping", "tokenize", "'null'", "keep"] {
        if fine != "keep" {
            assert_eq!(problems(unique, fine, ""), "", "{fine}");
        }
    }
    assert_eq!(problems(unique, "email", WHERE), "");
    assert_eq!(problems(short, "full-name", ""), "", "names are cut");
    assert_eq!(problems(|c| c.generated = true, "email", "").matches("public.t.c:").count(), 1);
}

#[test]
fn the_nearest_rule_is_taken() {
    let rules = "  'public.*': {columns: {'*email': 'null', email: tokenize}}
  customers: {columns: {email: email, born: keep}}
";
    let bound = bind(rules, &[customers()]);
    assert_eq!(bound.problems, Vec::<String>::new());
    let Treatment::Mask { columns, .. } = &bound.tables[0].treatment else { panic!("masked") };
    let masked: Vec<(usize, &str)> =
        columns.iter().map(|column| (column.column, column.algorithm.as_str())).collect();
    assert_eq!(
        masked,
        [(1, "email"), (3, "null")],
        "`born` is kept, and the pattern reaches `work_email`"
    );
    assert_eq!(bound.unruled, Vec::<String>::new());
    let Mask::Values(mask) = &columns[0].mask else { panic!("values are masked") };
    let mut out = String::new();
    mask.mask("a@b.test", &Row { values: &[None; 4] }, &mut out).expect("it is masked");
    assert!(out.ends_with("@example.com"), "the rule of the table itself counts");
    let twice =
        "  'public.*': {columns: {email: email}}\n  '*.customers': {columns: {email: phone}}\n";
    assert!(bind(twice, &[customers()]).problems[0].contains("two rules fit it equally"));
}

#[test]
fn rules_that_disagree_are_a_problem() {
    let rules = "  '*.*': {columns: {'*email': email}}\n  customers: {columns: {born: date-roll}, where: \"id > 1\"}\n";
    assert!(bind(rules, &[customers()]).problems[0].contains("differ in `where`"));
    let rules = "  '*.*': {columns: {other: email}}\n  customers: {columns: {born: date-roll}, where: \"id > 1\"}\n";
    assert_eq!(
        bind(rules, &[customers()]).problems,
        Vec::<String>::new(),
        "one masks nothing here"
    );
    let rules = "  'public.c*': {empty: true}\n  '*.customers': {columns: {email: email}}\n";
    let bound = bind(rules, &[customers()]);
    assert!(matches!(bound.tables[..], [BoundTable { treatment: Treatment::Empty, .. }]));
    assert_eq!((bound.problems, bound.idle), (Vec::new(), Vec::new()));
    let rules = "  'public.c*': {empty: true}\n  customers: {columns: {email: email, work_email: email, born: keep}}\n";
    let bound = bind(rules, &[customers()]);
    assert_eq!((bound.problems, bound.unruled), (Vec::new(), Vec::new()));
    assert!(matches!(bound.tables[0].treatment, Treatment::Mask { .. }));
    let bound = bind("  customers: {empty: true}\n", &[customers()]);
    assert!(matches!(bound.tables[0].treatment, Treatment::Empty));
    assert_eq!(bound.unruled, Vec::<String>::new(), "nothing is left in it");
}

#[test]
fn what_rules_do_not_reach_is_listed() {
    let rules = "  customers: {columns: {e_mail: email}}\n  'public.cust*': {columns: {'tel*': phone}}\n  other.t: {empty: true}\n";
    let bound = bind(rules, &[customers()]);
    assert_eq!(bound.problems.len(), 1);
    assert!(bound.problems[0].starts_with("public.customers.e_mail: the table has no such column"));
    assert_eq!(bound.idle, ["public.cust*.tel*: no such column", "other.t: no such table"]);
    assert_eq!(bound.unruled.len(), 3);
    assert!(bound.unruled[0].starts_with("public.customers.email: looks like e-mail"));
}

#[test]
fn masks_fit_their_columns() {
    let mask = |type_name: &str, chars_max, rule: &str, value: &str| {
        let column =
            ColumnFacts { type_name: type_name.into(), chars_max, ..column("c", TypeClass::Text) };
        let table = TableFacts { schema: "public".into(), name: "t".into(), columns: vec![column] };
        let bound = bind(&format!("  t: {{columns: {{c: {rule}}}}}\n"), &[table]);
        let Treatment::Mask { columns, .. } = &bound.tables[0].treatment else { panic!("masked") };
        let Mask::Values(mask) = &columns[0].mask else { panic!("values are masked") };
        let mut out = "é".to_owned();
        mask.mask(value, &Row { values: &[Some(value)] }, &mut out).map(|_| out[2..].to_owned())
    };
    let name = mask("text", None, "full-name", "Maria Jones").unwrap();
    assert!(name.chars().count() > 6);
    let cut = mask("character varying(6)", Some(6), "full-name", "Maria Jones").unwrap();
    assert!(cut.chars().count() <= 6 && name.starts_with(&cut), "{cut} of {name}");
    let keep_domain = "{algorithm: email, keep: domain}";
    assert!(mask("character varying(30)", Some(30), keep_domain, "a@b.test").is_ok());
    let long = format!("a@{}.test", "b".repeat(20));
    let why = mask("character varying(30)", Some(30), keep_domain, &long).unwrap_err().why;
    assert!(why.contains("longer"), "{why}");
    assert_eq!(
        mask("citext", None, "email", "A@B.test").unwrap(),
        mask("citext", None, "email", "a@b.TEST").unwrap()
    );
    assert_ne!(
        mask("text", None, "email", "A@B.test").unwrap(),
        mask("text", None, "email", "a@b.test").unwrap()
    );
    assert_eq!(
        mask("character(9)", Some(9), "character-mapping", "abc      ").unwrap(),
        mask("text", None, "character-mapping", "abc").unwrap()
    );
    assert_eq!(mask("character(3)", Some(3), "character-mapping", "   ").unwrap(), "   ");
}

#[test]
fn a_rule_may_name_the_database() {
    let rules = "version: 1\nkey: main\ntables: {\"shop.public.t\": {columns: {a: email}}, \
                 \"public.t\": {columns: {a: keep, b: phone}}, \"s*.public.t\": {columns: {c: phone}}}";
    let rules = Ruleset::parse(rules).unwrap();
    let columns = ["a", "b", "c"].map(|name| column(name, TypeClass::Text)).into();
    let tables = [TableFacts { schema: "public".into(), name: "t".into(), columns }];
    let bind = |database: &str| {
        let bound = rules.bind_in(database, &tables, &MaskingKey::new(b"x"));
        assert!(bound.problems.is_empty(), "{bound:?}");
        let masked: Vec<(usize, String)> = match bound.tables.into_iter().next() {
            Some(BoundTable { treatment: Treatment::Mask { columns, .. }, .. }) => {
                columns.into_iter().map(|one| (one.column, one.algorithm)).collect()
            }
            _ => Vec::new(),
        };
        (masked, bound.idle)
    };
    let named = |columns: &[(usize, &str)]| -> Vec<(usize, String)> {
        columns.iter().map(|(at, name)| (*at, (*name).to_owned())).collect()
    };
    // The one that names the database is nearer.
    assert_eq!(bind("shop"), (named(&[(0, "email"), (1, "phone"), (2, "phone")]), Vec::new()));
    let (masked, idle) = bind("other");
    assert_eq!(masked, named(&[(1, "phone")]));
    assert_eq!(idle.len(), 2, "{idle:?}");
}
