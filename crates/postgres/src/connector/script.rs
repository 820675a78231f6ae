//! Scripts in VDBs.

use super::host::Postgres;
use super::server::RunningServer;
use crate::program;
use crate::script::{self, Reach};
use offshoot_connector::{Program, Script, ScriptCourse, ScriptRunner, Server};
use offshoot_types::Failure;

impl ScriptRunner for Postgres {
    fn run(
        &self,
        server: &dyn Server,
        script: &Script,
        course: &mut dyn ScriptCourse,
    ) -> Result<(), Failure> {
        let running = RunningServer::of(server)?;
        let socket = running.with(|server| {
            let spec = server.spec();
            spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port()))
        });
        // It takes long: others ask the server meanwhile.
        let engine = || running.with(|server| server.connect());
        script::run(&Reach { socket, engine: &engine }, script, course)
    }

    fn has_committed(&self, server: &dyn Server, mark: &str) -> Result<bool, Failure> {
        let mut engine = RunningServer::of(server)?.with(|server| server.connect())?;
        script::end_sessions(&mut engine)?;
        script::has_committed(&mut engine, mark)
    }

    fn run_program(
        &self,
        program: &Program,
        course: &mut dyn ScriptCourse,
    ) -> Result<Vec<u8>, Failure> {
        let bin_dir = self.tools(&program.version)?.installation.bin_dir;
        program::run(&*self.launcher, &bin_dir, program, course)
    }
}
