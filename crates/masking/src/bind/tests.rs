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
    let Treatment::Mask { condition: None, columns } = &bound.tables[0].treatment else {
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
