//! A network of one host, for tests of what other hosts see.

use anyhow::{Context, Result, ensure};
use offshoot_os::process::{Spec, run};
use std::time::Duration;

/// Moves this thread, and what it starts from now on, into a network in which nothing is but this host with some
/// addresses, each as `10.99.0.1/24`. The kernel answers them by the loopback device, from the address that was asked.
/// Needs root.
///
/// # Errors
/// When the kernel has no such network, or no address is taken.
pub fn enter_own_network(addresses: &[&str]) -> Result<()> {
    // SAFETY: it changes the network of this thread alone.
    let entered = unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNET) };
    entered.context("a network of its own")?;
    ip(&["link", "set", "lo", "up"])?;
    addresses.iter().try_for_each(|address| ip(&["address", "add", address, "dev", "lo"]))
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = run(&Spec::new("ip").args(arguments), Duration::from_secs(10))?;
    ensure!(output.success(), "ip {arguments:?}: {}", output.stderr_text());
    Ok(())
}
