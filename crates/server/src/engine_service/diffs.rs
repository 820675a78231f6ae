//! Comparisons as the API shows them.

use super::masks::within;
use offshoot_api as api;
use offshoot_engine::{
    DiffRequest, DiffView, ObjectChange, RowChange, StateRequest, StateView, TableChanges,
    TableRead,
};
use offshoot_types::{ErrorKind, Failure};

/// Rows of a table, and the most that may be asked for.
const ROWS: (u32, u32) = (0, 10_000);
/// Patterns for tables.
const PATTERNS_MAX: usize = 1000;

pub(super) fn request(request: api::CreateDiff) -> Result<DiffRequest, Failure> {
    let api::CreateDiff { left, right, tables, rows, sql } = request;
    if tables.len() > PATTERNS_MAX {
        return Err(Failure::new(
            ErrorKind::InvalidInput,
            format!("{} patterns for tables are too many", tables.len()),
            "name several tables by one pattern, as in 'public.*'",
        ));
    }
    let state = |one: api::DiffState| -> Result<StateRequest, Failure> {
        Ok(StateRequest { object: one.object, moment: super::moment(one.moment)? })
    };
    let rows = within(rows, ROWS, "rows")?;
    Ok(DiffRequest { left: state(left)?, right: state(right)?, tables, rows, sql })
}

pub(super) fn diff(view: DiffView) -> api::Diff {
    let DiffView { left, right, found, took_ms } = view;
    api::Diff {
        left: state(left),
        right: state(right),
        schema: found.objects.into_iter().map(object).collect(),
        tables: found.tables.into_iter().map(table).collect(),
        sql: found.sql,
        notes: found.notes,
        took_ms,
    }
}

fn state(view: StateView) -> api::DiffedState {
    let StateView { object, position } = view;
    let (lsn, time) = (Some(position.log), Some(position.time));
    api::DiffedState { object, moment: api::Position { snapshot: None, lsn, time } }
}

fn object(change: ObjectChange) -> api::DiffObject {
    let ObjectChange { database, kind, name, before, after } = change;
    api::DiffObject { database, kind, name, before, after }
}

fn table(changes: TableChanges) -> api::DiffTable {
    let row = |RowChange { before, after }: RowChange| api::DiffRow { before, after };
    api::DiffTable {
        database: changes.database,
        table: changes.table,
        key: changes.key,
        columns: changes.columns,
        read: match changes.read {
            TableRead::Nothing => api::DiffRead::Nothing,
            TableRead::Pages => api::DiffRead::Pages,
            TableRead::Whole => api::DiffRead::Whole,
            TableRead::Skipped => api::DiffRead::Skipped,
        },
        why: changes.why,
        pages_read: changes.pages_read,
        pages: changes.pages,
        added: changes.added,
        changed: changes.changed,
        removed: changes.removed,
        rows: changes.rows.into_iter().map(row).collect(),
    }
}
