//! Which crate may use which.
//!
//! Edges point down: from a higher layer to a lower one. Inside a layer an edge must stand in the
//! table. A crate that must know less than its layer allows has the list of all it may know.

use super::Finding;
use anyhow::{Context, Result};
use serde_json::Value;

/// A row of the layering table.
struct Row {
    name: &'static str,
    layer: u8,
    /// Edges allowed inside the layer.
    beside: &'static [&'static str],
    /// If not empty: the only workspace crates this one may use at all.
    only: &'static [&'static str],
}

const fn row(name: &'static str, layer: u8, beside: &'static [&'static str]) -> Row {
    Row { name, layer, beside, only: &[] }
}

const TABLE: &[Row] = &[
    row("offshoot-types", 0, &[]),
    Row {
        name: "offshoot-format",
        layer: 0,
        beside: &["offshoot-types"],
        only: &["offshoot-types"],
    },
    row("offshoot-os", 0, &["offshoot-types"]),
    // The cache knows blocks, never where they are stored nor what they belong to.
    Row { name: "offshoot-cache", layer: 1, beside: &[], only: &["offshoot-types"] },
    Row {
        name: "offshoot-pool",
        layer: 1,
        beside: &["offshoot-cache"],
        only: &["offshoot-types", "offshoot-format", "offshoot-os", "offshoot-cache"],
    },
    Row {
        name: "offshoot-intent-log",
        layer: 1,
        beside: &[],
        only: &["offshoot-types", "offshoot-format", "offshoot-os"],
    },
    // Memory that servers read knows blocks, neither where they are stored nor what files are.
    Row { name: "offshoot-direct", layer: 1, beside: &[], only: &["offshoot-types"] },
    // Datasets know no protocol; the cache is the pool's.
    Row {
        name: "offshoot-dataset",
        layer: 1,
        beside: &["offshoot-pool", "offshoot-intent-log", "offshoot-direct"],
        only: &[
            "offshoot-types",
            "offshoot-format",
            "offshoot-os",
            "offshoot-direct",
            "offshoot-pool",
            "offshoot-intent-log",
        ],
    },
    // The keeper holds descriptors, whatever they are: neither mounts nor datasets.
    Row { name: "offshoot-keeper", layer: 1, beside: &[], only: &["offshoot-os"] },
    // A launcher runs programs, whatever they are: neither databases nor what the engine makes of them.
    Row {
        name: "offshoot-launcher",
        layer: 1,
        beside: &[],
        only: &["offshoot-types", "offshoot-os"],
    },
    // A cell confines programs, whatever they are.
    Row {
        name: "offshoot-cell",
        layer: 1,
        beside: &["offshoot-launcher"],
        only: &["offshoot-types", "offshoot-os", "offshoot-launcher"],
    },
    // Files know datasets, not what they are stored on.
    Row {
        name: "offshoot-fs",
        layer: 2,
        beside: &[],
        only: &["offshoot-types", "offshoot-os", "offshoot-direct", "offshoot-dataset"],
    },
    // A delivery knows only the files of a dataset.
    Row {
        name: "offshoot-delivery",
        layer: 2,
        beside: &["offshoot-fs"],
        only: &["offshoot-types", "offshoot-fs"],
    },
    Row {
        name: "offshoot-fuse",
        layer: 2,
        beside: &["offshoot-fs", "offshoot-delivery"],
        only: &["offshoot-types", "offshoot-os", "offshoot-fs", "offshoot-delivery"],
    },
    // Replication passes states of files on, whatever they are: neither databases nor the catalog.
    Row {
        name: "offshoot-replication",
        layer: 2,
        beside: &[],
        only: &["offshoot-types", "offshoot-format", "offshoot-dataset"],
    },
    // The domain is pure: no I/O, no store, no clock.
    Row { name: "offshoot-domain", layer: 3, beside: &[], only: &["offshoot-types"] },
    // Masking is pure, too: rules, keys and values, neither databases nor files.
    Row {
        name: "offshoot-masking",
        layer: 3,
        beside: &["offshoot-domain"],
        only: &["offshoot-types", "offshoot-domain"],
    },
    // Neither the catalog nor jobs know the store: what a step does is the engine's.
    Row {
        name: "offshoot-catalog",
        layer: 3,
        beside: &["offshoot-domain"],
        only: &["offshoot-types", "offshoot-os", "offshoot-domain"],
    },
    Row {
        name: "offshoot-workflow",
        layer: 3,
        beside: &["offshoot-domain", "offshoot-catalog"],
        only: &["offshoot-types", "offshoot-os", "offshoot-domain", "offshoot-catalog"],
    },
    // A connector knows databases and directories, neither the store nor the catalog.
    Row {
        name: "offshoot-connector",
        layer: 3,
        beside: &["offshoot-domain"],
        only: &["offshoot-types", "offshoot-os", "offshoot-domain"],
    },
    // A gateway knows the protocol of its clients and servers, not why a server is away.
    Row {
        name: "offshoot-gateway",
        layer: 3,
        beside: &[],
        only: &["offshoot-types", "offshoot-os"],
    },
    Row {
        name: "offshoot-postgres",
        layer: 3,
        beside: &["offshoot-domain", "offshoot-masking", "offshoot-connector", "offshoot-gateway"],
        only: &[
            "offshoot-types",
            "offshoot-os",
            "offshoot-launcher",
            "offshoot-domain",
            "offshoot-masking",
            "offshoot-connector",
            "offshoot-gateway",
        ],
    },
    // A kind of database for tests: in no product.
    Row {
        name: "offshoot-toy",
        layer: 3,
        beside: &["offshoot-domain", "offshoot-connector"],
        only: &[
            "offshoot-types",
            "offshoot-os",
            "offshoot-launcher",
            "offshoot-domain",
            "offshoot-connector",
        ],
    },
    // The engine knows databases by the connector's interface and protocols by the delivery's, but none in
    // particular.
    Row {
        name: "offshoot-engine",
        layer: 3,
        beside: &["offshoot-domain", "offshoot-catalog", "offshoot-workflow", "offshoot-connector"],
        only: &[
            "offshoot-types",
            "offshoot-os",
            "offshoot-direct",
            "offshoot-pool",
            "offshoot-dataset",
            "offshoot-fs",
            "offshoot-delivery",
            "offshoot-replication",
            "offshoot-keeper",
            "offshoot-domain",
            "offshoot-catalog",
            "offshoot-workflow",
            "offshoot-connector",
        ],
    },
    // A client knows only the API of the engine.
    Row { name: "offshoot-api", layer: 4, beside: &[], only: &["offshoot-types"] },
    Row {
        name: "offshoot-client",
        layer: 4,
        beside: &["offshoot-api"],
        only: &["offshoot-types", "offshoot-os", "offshoot-api"],
    },
    row("offshoot-server", 4, &["offshoot-api"]),
    // The basis of demonstration, benchmarks and tests speaks to the engine as a user does.
    Row { name: "offshoot-rig", layer: 4, beside: &[], only: &["offshoot-os"] },
    Row {
        name: "offshoot-demo",
        layer: 4,
        beside: &["offshoot-api", "offshoot-rig"],
        only: &["offshoot-types", "offshoot-os", "offshoot-api", "offshoot-rig"],
    },
    // Measures what a user can do, as a user does it: knows no engine from inside.
    Row {
        name: "offshoot-bench",
        layer: 4,
        beside: &["offshoot-api", "offshoot-rig"],
        only: &["offshoot-types", "offshoot-os", "offshoot-domain", "offshoot-api", "offshoot-rig"],
    },
    // An agent does what a user does, by the API alone.
    Row {
        name: "offshoot-mcp",
        layer: 4,
        beside: &["offshoot-api", "offshoot-client"],
        only: &[
            "offshoot-types",
            "offshoot-os",
            "offshoot-domain",
            "offshoot-api",
            "offshoot-client",
        ],
    },
    row(
        "offshoot-cli",
        4,
        &[
            "offshoot-api",
            "offshoot-client",
            "offshoot-server",
            "offshoot-demo",
            "offshoot-bench",
            "offshoot-mcp",
        ],
    ),
    // Outside the product: may use anything, and nothing may use them.
    row("offshoot-testbed", 9, &[]),
    row("offshoot-engine-tests", 9, &[]),
    // Sees connectors only through their interface.
    Row {
        name: "offshoot-conformance",
        layer: 9,
        beside: &[],
        only: &["offshoot-types", "offshoot-os", "offshoot-domain", "offshoot-connector"],
    },
    row("offshoot-sim", 9, &[]),
    row("offshoot-fuzz", 9, &[]),
    row("offshoot-filesystem-tests", 9, &[]),
    row("xtask", 9, &[]),
];

/// Checks the edges that `cargo metadata --no-deps` lists. Edges of tests alone are free.
pub fn check(metadata: &Value) -> Result<Vec<Finding>> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let name = package["name"].as_str().context("a package has a name")?;
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let inside = dependency["path"].is_string();
            if inside && dependency["kind"].as_str() != Some("dev") {
                let to = dependency["name"].as_str().context("a dependency has a name")?;
                findings.extend(check_edge(name, to));
            }
        }
        findings.extend(find(name).is_none().then(|| unknown(name)));
    }
    Ok(findings)
}

fn check_edge(from: &str, to: &str) -> Option<Finding> {
    let (from_row, to_row) = (find(from)?, find(to)?);
    let message = if to_row.layer > from_row.layer {
        format!("{from} (layer {}) may not use {to} (layer {}): up", from_row.layer, to_row.layer)
    } else if to_row.layer == from_row.layer && !from_row.beside.contains(&to) {
        format!("{from} may not use {to}: the same layer, and the edge is not in the table")
    } else if !from_row.only.is_empty() && !from_row.only.contains(&to) {
        format!("{from} may not use {to}: it may know only {}", from_row.only.join(", "))
    } else {
        return None;
    };
    Some(Finding { path: "xtask/src/tidy/layers.rs".into(), line: 0, message })
}

fn find(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

fn unknown(name: &str) -> Finding {
    Finding {
        path: "xtask/src/tidy/layers.rs".into(),
        line: 0,
        message: format!("{name} is not in the layering table: give it a layer"),
    }
}

#[cfg(test)]
mod tests;
