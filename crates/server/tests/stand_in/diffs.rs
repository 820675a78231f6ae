//! What the stand-in says that differs.

use super::time;
use offshoot_api::*;

pub fn found(asked: &CreateDiff) -> Diff {
    let state = |one: &DiffState| DiffedState {
        object: one.object.clone(),
        moment: Position { snapshot: None, lsn: Some("0/3000060".into()), time: Some(time()) },
    };
    let text = |text: &str| Some(text.to_owned());
    let rows = vec![
        DiffRow { before: None, after: Some(vec![text("3"), None]) },
        DiffRow {
            before: Some(vec![text("4"), text("x")]),
            after: Some(vec![text("4"), text("y")]),
        },
    ];
    Diff {
        left: state(&asked.left),
        right: state(&asked.right),
        schema: vec![DiffObject {
            database: text("shop"),
            kind: "column".into(),
            name: "public.orders.note".into(),
            before: None,
            after: text("text"),
        }],
        tables: vec![DiffTable {
            database: "shop".into(),
            table: "public.orders".into(),
            key: vec!["id".into()],
            columns: vec!["id".into(), "note".into()],
            read: DiffRead::Pages,
            why: None,
            pages_read: 2,
            pages: 100,
            added: 1,
            changed: 1,
            removed: 0,
            rows: rows.into_iter().take(asked.rows.unwrap_or(0) as usize).collect(),
        }],
        sql: asked.sql.then(|| "BEGIN;\nCOMMIT;\n".to_owned()),
        notes: Vec::new(),
        took_ms: 12,
    }
}
