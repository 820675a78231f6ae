use super::*;
use offshoot_masking::Unmaskable;

/// Turns a value around; refuses one that begins with `!`, and gives NULL for `?`.
struct Reversed;

impl ValueMask for Reversed {
    fn mask(&self, value: &str, row: &Row<'_>, out: &mut String) -> Result<Outcome, Unmaskable> {
        assert!(row.values.contains(&Some(value)), "{:?}", row.values);
        if value.starts_with('!') {
            return Err(Unmaskable { why: "it begins badly" });
        }
        if value == "?" {
            return Ok(Outcome::Null);
        }
        out.extend(value.chars().rev());
        Ok(Outcome::Value)
    }
}

/// `flag, id, name, note`, and what the database made of `note`.
fn plan(flag: Option<usize>) -> RowPlan {
    let written = |column: &str, field, not_null, change| Written {
        column: column.to_owned(),
        field,
        not_null,
        change,
    };
    RowPlan {
        fields: 5,
        written: vec![
            written("id", 1, true, Change::Kept),
            written(
                "name",
                2,
                true,
                Change::Masked { group: 0, place: 1, mask: Arc::new(Reversed) },
            ),
            written("note", 3, false, Change::Computed { group: 0, field: 4 }),
        ],
        groups: vec![Group { flag, layout: vec![1, 2, 3] }],
        key: vec![("id".to_owned(), 1)],
        padded: vec![false, false, true, false, false],
    }
}

fn masked(flag: Option<usize>, rows: &str) -> Result<(String, Counts), Fault> {
    let mut out = Vec::new();
    let counts = plan(flag).mask(rows.as_bytes(), &mut out)?;
    Ok((String::from_utf8(out).unwrap(), counts))
}

#[test]
fn named_values_are_replaced_and_others_stay() {
    let rows = "t\t1\ta\\tb\\\\  \tx\ty\nf\t2\tabc\tx\ty\nt\t\\N\t\\N\t\\N\ty\nt\t4\t\tk\\n\t\\N\n";
    let (out, counts) = masked(Some(0), rows).unwrap();
    assert_eq!(out, "1\t\\\\b\\ta\ty\n2\tabc\tx\n\\N\t\\N\t\\N\n4\t\t\\N\n");
    assert_eq!(counts, Counts { rows: 4, values: 3 });
    let (out, counts) = masked(None, "f\t2\tabc\tx\ty\n").unwrap();
    assert_eq!((out.as_str(), counts.values), ("2\tcba\ty\n", 2));
}

#[test]
fn a_fault_names_column_and_key_but_no_value() {
    let fault = masked(None, "t\t7\t!secret\tx\ty\n").unwrap_err();
    let wanted = ("name", "id=7", "it begins badly");
    assert_eq!((fault.column.as_str(), fault.row.as_str(), fault.why.as_str()), wanted);
    assert!(masked(None, "t\t7\t?\tx\ty\n").unwrap_err().why.contains("NULL"));
    assert!(masked(None, "t\t7\n").is_err());
    assert!(plan(None).mask(b"t\t7\t\xff\tx\ty\n", &mut Vec::new()).is_err());
}

#[test]
fn whatever_is_escaped_is_understood_again() {
    let text = "a\u{8}\u{c}\n\r\t\u{b}\\N é";
    let mut out = Vec::new();
    escape(text, &mut out);
    assert_eq!(unescape(std::str::from_utf8(&out).unwrap()).unwrap(), text);
    assert_eq!(unescape("\\N"), None);
}
