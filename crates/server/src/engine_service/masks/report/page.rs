//! A report as a page that needs nothing else: no script, nothing from elsewhere.

use offshoot_api::{MaskMode, MaskReport};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}\
    table{border-collapse:collapse;margin:.5em 0 1.5em;width:100%}\
    th,td{text-align:left;padding:.3em .8em .3em 0;border-bottom:1px solid #ddd;vertical-align:top}\
    td.n,th.n{text-align:right}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:1.6em}\
    code{font-size:.9em;overflow-wrap:anywhere}.low{color:#a40000;font-weight:600}";

/// Writes the page; `signature` is the last text in it.
pub fn page(report: &MaskReport, public_key: &str, signature: &str) -> String {
    let title = format!("Masking report: {}", escaped(&report.name));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    page += &summary(report);
    page += &tables(report);
    page += &columns(report);
    page += &anonymity(report);
    page += &list(
        "Columns that look sensitive and have no rule",
        &format!("Accepted by {}, who applied the rules.", report.accepted_by),
        &report.columns_without_rule,
    );
    page += &list("Columns that the rules keep as they are", "", &report.columns_kept);
    page += &list("Rules that met no table or column", "", &report.idle_rules);
    page += &removed(report);
    page += &list("All columns that are as in the source", "", &report.columns_unmasked);
    page += &format!(
        "<h2>Signature</h2>\n<p>Signed with Ed25519. Public key: <code>{public_key}</code></p>\n\
         <p>Check this file with <code>offshoot mask report --verify FILE</code>.</p>\n\
         <p><code>{signature}</code></p>\n</body>\n</html>\n"
    );
    page
}

fn masked(mode: MaskMode) -> &'static str {
    match mode {
        MaskMode::Full => "everything",
        MaskMode::Incremental => "what has changed since the image before",
    }
}

fn summary(report: &MaskReport) -> String {
    let source_time = report.source_time.map(|time| time.to_string()).unwrap_or_default();
    let rows = [
        ("Masked dSource", report.name.clone()),
        ("Image", report.snapshot.to_string()),
        ("Source", report.source.clone()),
        ("Snapshot of the source", report.source_snapshot.to_string()),
        ("Moment of the source", source_time),
        ("Server", report.server_version.clone()),
        ("Offshoot", report.engine_version.clone()),
        ("Rules, SHA-256", report.rules_sha256.clone()),
        ("Key", format!("{}, version {}", report.key, report.key_version)),
        ("Masked", masked(report.mode).to_owned()),
        ("Rules applied by", report.accepted_by.clone()),
        ("Began", report.started_at.to_string()),
        ("Ended", report.ended_at.to_string()),
        ("Masking took", format!("{} ms", report.took_ms)),
        ("Values replaced", report.values_masked.to_string()),
    ];
    let rows = rows
        .into_iter()
        .map(|(head, value)| format!("<tr><th>{head}</th><td>{}</td></tr>\n", escaped(&value)));
    format!("<table>\n{}</table>\n", rows.collect::<String>())
}

fn tables(report: &MaskReport) -> String {
    let rows = report.tables.iter().map(|table| {
        let what = match (table.emptied, table.conditional) {
            (true, _) => "emptied",
            (false, true) => "masked where a condition holds",
            (false, false) => "masked",
        };
        vec![text(&table.name), number(table.rows_before), number(table.rows_after), text(what)]
    });
    let heads = ["Table", "Rows before", "Rows after", "What was done"];
    section("Tables", "", &heads, rows.collect())
}

fn columns(report: &MaskReport) -> String {
    let rows = report.columns.iter().map(|column| {
        vec![
            text(&format!("{}.{}", column.table, column.column)),
            text(&column.algorithm),
            text(&column.uniqueness),
            text(&column.learned),
        ]
    });
    let heads = ["Column", "Algorithm", "Uniqueness", "Who has the masks, but not the key, learns"];
    section("Masked columns", "", &heads, rows.collect())
}

fn anonymity(report: &MaskReport) -> String {
    let rows = report.anonymity.iter().map(|one| {
        let low = if one.smallest < one.k && one.rows > 0 { "n low" } else { "n" };
        vec![
            text(&format!("{}: {}", one.table, one.columns.join(", "))),
            number(one.rows),
            number(one.combinations),
            number(one.unique),
            (low, one.smallest.to_string()),
            number(one.k),
            number(one.rows_below),
        ]
    });
    let heads = [
        "Columns together",
        "Rows",
        "Combinations",
        "Of one row",
        "Smallest group",
        "Wanted (k)",
        "Rows in smaller groups",
    ];
    let note = "How many rows of the masked image share each combination of the quasi-identifiers that the rules name. \
                Rows in small groups may be told apart by who knows these values from elsewhere.";
    section("Re-identification", note, &heads, rows.collect())
}

fn removed(report: &MaskReport) -> String {
    let rows = report.removed.iter().map(|one| {
        let count = one.count.map_or_else(|| "all".to_owned(), |count| count.to_string());
        vec![text(&one.what), ("n", count)]
    });
    section("Removed besides", "", &["What", "How many"], rows.collect())
}

fn list(title: &str, note: &str, lines: &[String]) -> String {
    section(title, note, &[], lines.iter().map(|line| vec![text(line)]).collect())
}

/// A table below a title: each cell with its class.
fn section(
    title: &str,
    note: &str,
    heads: &[&str],
    rows: Vec<Vec<(&'static str, String)>>,
) -> String {
    let mut html = format!("<h2>{title}</h2>\n");
    if rows.is_empty() {
        return html + "<p>None.</p>\n";
    }
    if !note.is_empty() {
        html += &format!("<p>{}</p>\n", escaped(note));
    }
    html += "<table>\n";
    if !heads.is_empty() {
        let class = |at: usize| rows.first().and_then(|row| row.get(at)).map_or("", |cell| cell.0);
        let cell = |(at, head): (usize, &&str)| {
            let class = class(at).split(' ').next().unwrap_or_default();
            format!("<th class=\"{class}\">{head}</th>")
        };
        let heads: String = heads.iter().enumerate().map(cell).collect();
        html += &format!("<tr>{heads}</tr>\n");
    }
    for row in &rows {
        let cell = |(class, value): &(&str, String)| {
            format!("<td class=\"{class}\">{}</td>", escaped(value))
        };
        html += &format!("<tr>{}</tr>\n", row.iter().map(cell).collect::<String>());
    }
    html + "</table>\n"
}

fn text(value: &str) -> (&'static str, String) {
    ("", value.to_owned())
}

fn number(value: u64) -> (&'static str, String) {
    ("n", value.to_string())
}

/// Names come from a database, and may hold anything.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
