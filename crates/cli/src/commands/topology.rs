//! `offshoot topology`

use super::Session;
use offshoot_api::{Topology, TopologyEngine};
use offshoot_types::Failure;
use std::collections::BTreeSet;

/// Runs the command.
pub fn run(session: &Session) -> Result<(), Failure> {
    session.output.print(&session.client.topology()?, text);
    Ok(())
}

/// A tree from each engine that nobody sends to; what was drawn above is not drawn again.
fn text(topology: &Topology) -> String {
    if topology.links.is_empty() {
        return "this engine sends to no other, and none sends here; let one in with: offshoot peer invite"
            .to_owned();
    }
    let mut drawing = Drawing { topology, drawn: BTreeSet::new(), lines: Vec::new() };
    let is_sent_to = |one: &&TopologyEngine| topology.links.iter().any(|to| to.to == one.engine);
    let (later, first): (Vec<_>, Vec<_>) = topology.engines.iter().partition(is_sent_to);
    for one in first.into_iter().chain(later) {
        if !drawing.drawn.contains(&one.engine) {
            drawing.draw(one, "", "");
        }
    }
    drawing.lines.join("\n")
}

struct Drawing<'a> {
    topology: &'a Topology,
    drawn: BTreeSet<String>,
    lines: Vec<String>,
}

impl Drawing<'_> {
    /// An engine and those that it sends to: `branch` comes before it, `below` before what is under it.
    fn draw(&mut self, one: &TopologyEngine, branch: &str, below: &str) {
        let name = one.name.as_deref().unwrap_or("this engine");
        if !self.drawn.insert(one.engine.clone()) {
            self.lines.push(format!("{branch}{name} (above)"));
            return;
        }
        let heard = if one.as_of.is_some() { "" } else { " (not heard of by itself)" };
        self.lines.push(format!("{branch}{name}{heard}"));
        let topology = self.topology;
        let from = |to: &&TopologyEngine| {
            topology.links.iter().any(|link| link.from == one.engine && link.to == to.engine)
        };
        let to: Vec<&TopologyEngine> = topology.engines.iter().filter(from).collect();
        for (at, next) in to.iter().enumerate() {
            let (turn, more) =
                if at + 1 == to.len() { ("└─▶ ", "    ") } else { ("├─▶ ", "│   ") };
            self.draw(next, &format!("{below}{turn}"), &format!("{below}{more}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use offshoot_api::TopologyLink;

    fn drawn(engines: &[&str], links: &[(&str, &str)]) -> String {
        let engine = |name: &&str| TopologyEngine {
            engine: (*name).to_owned(),
            name: Some(*name).filter(|name| *name != "own").map(str::to_owned),
            as_of: Some(jiff::Timestamp::UNIX_EPOCH),
        };
        let link = |(from, to): &(&str, &str)| TopologyLink {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        };
        text(&Topology {
            engines: engines.iter().map(engine).collect(),
            links: links.iter().map(link).collect(),
        })
    }

    #[test]
    fn a_tree_begins_where_nobody_sends_to() {
        let links = [("west", "own"), ("own", "far"), ("own", "test"), ("far", "far/off")];
        assert_eq!(
            drawn(&["own", "far", "test", "west", "far/off"], &links),
            "west\n└─▶ this engine\n    ├─▶ far\n    │   └─▶ far/off\n    └─▶ test"
        );
    }

    #[test]
    fn what_goes_both_ways_ends() {
        assert_eq!(
            drawn(&["own", "far"], &[("own", "far"), ("far", "own")]),
            "this engine\n└─▶ far\n    └─▶ this engine (above)"
        );
    }

    #[test]
    fn one_alone_is_told_how_not_to_be() {
        assert!(drawn(&["own"], &[]).contains("offshoot peer invite"));
    }
}
