//! The grammar of `offshoot bench`.

use crate::benchmarks::{
    clone_size, compare, confinement, encryption, fill, fragmentation, gateway, io, link, load,
    many, mask, moments, neighbours, pgbench, provision, quick, replay, replication, restart,
    scripts, suite,
};
use clap::Subcommand;

/// Measure what users notice, compared with what they would do without Offshoot
#[derive(Debug, Subcommand)]
#[allow(missing_docs)] // the arguments of each say what it measures, also to --help
pub enum BenchCommand {
    Fill(fill::Arguments),
    Run(load::Arguments),
    Scripts(scripts::Arguments),
    Quick(quick::Arguments),
    Compare(compare::Arguments),
    Suite(suite::Arguments),
    Fragmentation(fragmentation::Arguments),
    Io(io::Arguments),
    Provision(provision::Arguments),
    Link(link::Arguments),
    Replay(replay::Arguments),
    Pgbench(pgbench::Arguments),
    CloneSize(clone_size::Arguments),
    Many(many::Arguments),
    Mask(mask::Arguments),
    Moments(moments::Arguments),
    Neighbours(neighbours::Arguments),
    Confinement(confinement::Arguments),
    Gateway(gateway::Arguments),
    Encryption(encryption::Arguments),
    Restart(restart::Arguments),
    Replication(replication::Arguments),
}
