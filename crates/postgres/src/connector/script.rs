//! Scripts in VDBs.

use super::host::Postgres;
use super::server::RunningServer;
use crate::script::{self, Reach};
use offshoot_connector::{Script, ScriptCourse, ScriptRunner, Server};
use offshoot_types::Failure;
use std::any::Any;

fn running(server: &dyn Server) -> Result<&RunningServer, Failure> {
    (server as &dyn Any)
        .downcast_ref()
        .ok_or_else(|| Failure::internal("the server of another connector"))
}

impl ScriptRunner for Postgres {
    fn run(
        &self,
        server: &dyn Server,
        script: &Script,
        course: &mut dyn ScriptCourse,
    ) -> Result<(), Failure> {
        let running = running(server)?;
        let socket = running.with(|server| {
            let spec = server.spec();
            spec.socket_dir().join(format!(".s.PGSQL.{}", spec.socket_port()))
        });
        // It takes long: others ask the server meanwhile.
        let engine = || running.with(|server| server.connect());
        script::run(&Reach { socket, engine: &engine }, script, course)
    }

    fn has_committed(&self, server: &dyn Server, mark: &str) -> Result<bool, Failure> {
        let mut engine = running(server)?.with(|server| server.connect())?;
        script::end_sessions(&mut engine)?;
        script::has_committed(&mut engine, mark)
    }
}
