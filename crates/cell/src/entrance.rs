//! The program that builds a cell and becomes its server.

use crate::spec::CellSpec;
use crate::{calls, doorman, network, rights, rooms};
use offshoot_os::process::PRELOAD;
use offshoot_types::Failure;
use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Builds the cell around this process and becomes `command` in it. Only for a process with one thread.
///
/// # Errors
/// What the host refused, with what to do about it. The process must end then: it is half confined.
pub fn enter(spec: &str, command: &[OsString]) -> Result<Infallible, Failure> {
    let spec: CellSpec = serde_json::from_str(spec)
        .map_err(|error| Failure::internal(format!("the cell is not understood: {error}")))?;
    let Some((program, arguments)) = command.split_first() else {
        return Err(Failure::internal("a cell for no program"));
    };
    confine(&spec).map_err(|(step, error)| {
        Failure::new(
            offshoot_types::ErrorKind::HostUnprepared,
            format!("this host cannot confine a server: {step}: {error}"),
            "allow namespaces, Landlock and seccomp, or run: offshoot serve --unconfined",
        )
    })?;
    #[allow(clippy::disallowed_methods)] // no child: this process becomes it
    let mut command = Command::new(program);
    if let Some(library) = std::env::var_os(PRELOAD) {
        command.env("LD_PRELOAD", library).env_remove(PRELOAD);
    }
    let error = command.args(arguments).env_remove(crate::spec::HEAP.0).exec();
    let program = program.display();
    Err(Failure::internal(format!("cannot start {program} in its cell: {error}")))
}

/// Each step takes something away that the ones before need.
fn confine(spec: &CellSpec) -> Result<(), (&'static str, io::Error)> {
    let step = |name| move |error| (name, error);
    rights::separate().map_err(step("namespaces"))?;
    rooms::build(spec).map_err(step("a root of its own"))?;
    let doorman = doorman::start(&spec.reaches, spec.user.as_ref());
    let doorman = doorman.map_err(step("a doorman"))?;
    rights::give_up(spec.user.as_ref()).map_err(step("giving up rights"))?;
    rights::limit_processes(spec.processes_max).map_err(step("a limit of processes"))?;
    network::restrict(spec.port, &spec.connects).map_err(step("Landlock"))?;
    calls::restrict(spec.udp).map_err(step("seccomp"))?;
    doorman.map_or(Ok(()), |doorman| doorman.watch()).map_err(step("a doorman"))
}
