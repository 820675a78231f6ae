//! The page for people: figures with their spread, charts, how it was measured. One file, no network.

use crate::chart::{self, Bar, escape};
use crate::figures::short;
use crate::record::{Chart, Line, Measurement, Record};
use crate::statistics::Spread;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;color:#1a1a1a;max-width:900px;\
margin:2em auto;padding:0 1em}h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}\
table{border-collapse:collapse;width:100%;font-size:.9em}th,td{text-align:left;padding:.25em .6em;\
border-bottom:1px solid #ddd}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\
.ok{color:#00704f}.MISSED{color:#b33c00;font-weight:600}svg{width:100%;height:auto}\
svg text{font:11px system-ui,sans-serif;fill:#444}.grid{stroke:#e4e4e4}.spread{stroke:#222;fill:none;\
stroke-width:1.2}.unit{margin:.2em 0;color:#555;font-size:.85em}.legend{font-size:.85em}\
.legend span{margin-right:1.2em;white-space:nowrap}.legend i{display:inline-block;width:.8em;\
height:.8em;margin-right:.35em}.note{background:#fff7e0;border-left:3px solid #e69f00;\
padding:.3em .8em;margin:.3em 0}pre{background:#f6f6f6;padding:.8em;overflow:auto;font-size:.8em}";

/// Most kinds of waits that are told apart in the chart.
const WAITS_MAX: usize = 7;

/// Ends a record, writes it and its report, and returns where they are.
///
/// # Errors
/// What the operating system says.
pub fn write(record: &mut Record, into: &Path) -> Result<PathBuf> {
    record.end();
    std::fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
    let (result, page) = (into.join("result.json"), into.join("report.html"));
    std::fs::write(&result, serde_json::to_string_pretty(record)?)
        .with_context(|| format!("writing {}", result.display()))?;
    std::fs::write(&page, html(record)).with_context(|| format!("writing {}", page.display()))?;
    Ok(page)
}

/// The page.
fn html(record: &Record) -> String {
    let title = format!("offshoot bench {}", record.benchmark);
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\
         <style>{STYLE}</style></head><body><h1>{title}</h1><p>{:.0}, {:.0} s</p>",
        record.began_at, record.seconds
    );
    for note in &record.notes {
        page.push_str(&format!("<p class=\"note\">{}</p>", escape(note)));
    }
    page.push_str(&figures(record));
    let groups = groups(record);
    if !groups.is_empty() {
        page.push_str(&load_charts(&groups));
        page.push_str(&load_tables(&groups));
    }
    for chart in &record.charts {
        section(&mut page, &chart.title, &chart::lines(chart));
    }
    section(&mut page, "Environment", &environment(record));
    let settings = serde_json::to_string_pretty(&record.settings).unwrap_or_default();
    section(&mut page, "Settings", &format!("<pre>{}</pre>", escape(&settings)));
    page + "</body></html>\n"
}

fn section(page: &mut String, title: &str, body: &str) {
    page.push_str(&format!("<h2>{}</h2>{body}", escape(title)));
}

/// Measurements of the same thing together, in the order in which they first ran.
fn groups(record: &Record) -> Vec<(String, Vec<&Measurement>)> {
    let mut groups: Vec<(String, Vec<&Measurement>)> = Vec::new();
    for measurement in &record.measurements {
        let label = measurement.label();
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, members)) => members.push(measurement),
            None => groups.push((label, vec![measurement])),
        }
    }
    groups
}

fn figures(record: &Record) -> String {
    let rows: String = record
        .figures
        .all()
        .iter()
        .map(|figure| {
            let (spread, mark) = (&figure.spread, figure.mark());
            row(&[
                &escape(&figure.name),
                &short(spread.median),
                &short(spread.min),
                &short(spread.max),
                &figure.samples.len().to_string(),
                &format!("{} <span class=\"{mark}\">{mark}</span>", figure.goal),
            ])
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    table(&["figure", "median", "min", "max", "samples", "goal"], &rows)
}

fn load_charts(groups: &[(String, Vec<&Measurement>)]) -> String {
    let mut page = String::new();
    let lines = groups.iter().filter_map(|(label, members)| {
        let last = members.last()?;
        let values = last.observed.load.per_second.iter().map(|count| *count as f64);
        Some(Line::counted(label.clone(), values))
    });
    let chart = Chart {
        title: "Transactions per second over time, last repeat".into(),
        x: "second".into(),
        y: "transactions per second".into(),
        lines: lines.collect(),
    };
    section(&mut page, &chart.title, &chart::lines(&chart));
    type Pick = fn(&Measurement) -> f64;
    let picks: [(&str, Pick); 4] = [
        ("Transactions per minute, median and spread", |m| m.observed.load.tpm),
        ("Latency p95, ms", |m| m.observed.load.latency.p95_ms),
        ("Worst second, transactions", |m| m.observed.load.per_second_min as f64),
        ("Reads of all devices", |m| m.observed.devices.iter().map(|d| d.reads as f64).sum()),
    ];
    for (title, pick) in picks {
        section(&mut page, title, &chart::bars(title, &bars(groups, pick)));
    }
    section(&mut page, "What sessions waited for", &waits(groups));
    section(&mut page, "Processors", &processors(groups));
    page
}

fn bars(groups: &[(String, Vec<&Measurement>)], pick: fn(&Measurement) -> f64) -> Vec<Bar> {
    let bar = |(label, members): &(String, Vec<&Measurement>)| {
        let samples: Vec<f64> = members.iter().map(|member| pick(member)).collect();
        Bar { name: label.clone(), spread: Spread::of(&samples) }
    };
    groups.iter().map(bar).collect()
}

fn waits(groups: &[(String, Vec<&Measurement>)]) -> String {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in groups.iter().flat_map(|(_, m)| m).flat_map(|m| &m.observed.database.waits)
    {
        *totals.entry(name).or_default() += count;
    }
    let mut frequent: Vec<_> = totals.into_iter().collect();
    frequent.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let kept: Vec<&str> = frequent.iter().take(WAITS_MAX).map(|(name, _)| *name).collect();
    let rows: Vec<_> = groups
        .iter()
        .map(|(label, members)| {
            let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
                let all = members.iter().flat_map(|m| &m.observed.database.waits);
                all.filter(|(name, _)| wanted(name)).map(|(_, count)| *count as f64).sum()
            };
            let mut parts: Vec<_> = kept
                .iter()
                .map(|name| ((*name).to_owned(), sum(&|other| other == *name)))
                .collect();
            parts.push(("other".to_owned(), sum(&|name| !kept.contains(&name))));
            (label.clone(), parts)
        })
        .collect();
    chart::shares("waits", &rows)
}

fn processors(groups: &[(String, Vec<&Measurement>)]) -> String {
    let rows: Vec<_> = groups
        .iter()
        .map(|(label, members)| {
            let mean = |pick: fn(&Measurement) -> f64| {
                members.iter().map(|member| pick(member)).sum::<f64>() / members.len() as f64
            };
            let parts = vec![
                ("programs".to_owned(), mean(|m| m.observed.cpu.user)),
                ("kernel".to_owned(), mean(|m| m.observed.cpu.system)),
                ("waiting for devices".to_owned(), mean(|m| m.observed.cpu.iowait)),
                ("stolen".to_owned(), mean(|m| m.observed.cpu.steal)),
                ("idle".to_owned(), mean(|m| m.observed.cpu.idle)),
            ];
            (label.clone(), parts)
        })
        .collect();
    chart::shares("processors", &rows)
}

fn load_tables(groups: &[(String, Vec<&Measurement>)]) -> String {
    let mut page = String::new();
    let (mut latencies, mut work) = (String::new(), String::new());
    for member in groups.iter().flat_map(|(_, members)| members) {
        let (name, load) =
            (format!("{} #{}", member.label(), member.repeat), &member.observed.load);
        let kinds = load.by_kind.iter().map(|(kind, latency)| (*kind, latency));
        for (kind, latency) in std::iter::once(("all", &load.latency)).chain(kinds) {
            latencies.push_str(&row(&[
                &escape(&name),
                kind,
                &latency.count.to_string(),
                &latency.errors.to_string(),
                &short(latency.mean_ms),
                &short(latency.p50_ms),
                &short(latency.p90_ms),
                &short(latency.p95_ms),
                &short(latency.p99_ms),
                &short(latency.max_ms),
            ]));
        }
        work.push_str(&work_row(&name, member));
    }
    let heads =
        ["load", "transaction", "done", "errors", "mean ms", "p50", "p90", "p95", "p99", "max"];
    section(&mut page, "Latency by transaction", &table(&heads, &latencies));
    let heads = [
        "load",
        "checkpoints",
        "WAL MB",
        "server hits",
        "engine hits",
        "reads",
        "read MB",
        "read ms",
        "writes",
        "written MB",
        "write ms",
        "space MB",
    ];
    section(&mut page, "Database, cache, devices", &table(&heads, &work));
    page
}

fn work_row(name: &str, member: &Measurement) -> String {
    let (observed, devices) = (&member.observed, &member.observed.devices);
    let sum = |pick: fn(&crate::host::DeviceWork) -> f64| devices.iter().map(pick).sum::<f64>();
    let (reads, writes) = (sum(|d| d.reads as f64), sum(|d| d.writes as f64));
    let engine = member.engine_cache.map_or("–".to_owned(), |cache| percent(cache.hit_ratio));
    row(&[
        &escape(name),
        &observed.database.checkpoints.to_string(),
        &short(observed.database.wal_bytes as f64 / 1e6),
        &percent(observed.database.hit_ratio),
        &engine,
        &format!("{reads:.0}"),
        &short(sum(|d| d.read_mb)),
        &short(sum(|d| d.read_mean_ms * d.reads as f64) / reads.max(1.0)),
        &format!("{writes:.0}"),
        &short(sum(|d| d.written_mb)),
        &short(sum(|d| d.write_mean_ms * d.writes as f64) / writes.max(1.0)),
        &short(member.space_bytes as f64 / 1e6),
    ])
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn environment(record: &Record) -> String {
    let environment = &record.environment;
    let rows = [
        ("processor", format!("{} × {}", environment.cpus, environment.cpu)),
        ("memory", format!("{:.1} GiB", environment.memory_bytes as f64 / f64::from(1 << 30))),
        ("kernel", environment.kernel.clone()),
        ("PostgreSQL", environment.postgresql.clone()),
        ("offshoot", format!("{} ({} build)", environment.offshoot, environment.build)),
        ("load average at the begin", environment.load_average.clone()),
        ("scratch filesystem", environment.scratch_filesystem.clone()),
    ];
    let rows: String = rows.iter().map(|(name, value)| row(&[name, &escape(value)])).collect();
    table(&["", ""], &rows)
}

fn table(heads: &[&str], rows: &str) -> String {
    let heads: String = heads.iter().enumerate().map(|(at, head)| cell("th", at, head)).collect();
    format!("<table><tr>{heads}</tr>{rows}</table>")
}

fn row(cells: &[&str]) -> String {
    let cells: String = cells.iter().enumerate().map(|(at, text)| cell("td", at, text)).collect();
    format!("<tr>{cells}</tr>")
}

/// Names stand left, numbers right.
fn cell(tag: &str, at: usize, text: &str) -> String {
    let class = if at == 0 { "" } else { " class=\"n\"" };
    format!("<{tag}{class}>{text}</{tag}>")
}
