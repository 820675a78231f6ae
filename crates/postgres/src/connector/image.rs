//! Checks of images.

use super::host::Postgres;
use super::server::RunningServer;
use crate::check_image::{Findings as Found, Scope, check_pages, check_running};
use crate::control::Control;
use offshoot_connector::{
    DataDir, Differing, Findings, ImageChecker, ImageScope, Server, ServerSpec, Tick,
};
use offshoot_types::Failure;
use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl ImageChecker for Postgres {
    fn scope(
        &self,
        image: &ServerSpec,
        differing: &Differing<'_>,
    ) -> Result<Box<dyn ImageScope>, Failure> {
        let control = self.control(image)?;
        let scope = Scope::of(&control, &*image.files, differing)
            .map_err(|error| Failure::internal(format!("the files of the image: {error}")))?;
        Ok(Box::new(PagesToCheck { control, scope, read: BTreeSet::new() }))
    }
}

/// Small files must be sound before a server is started on them. For large heaps, the server verifies
/// the checksums of what it reads, so reading them once is enough.
struct PagesToCheck {
    control: Control,
    scope: Scope,
    /// What the server has read.
    read: BTreeSet<String>,
}

fn told(found: Found) -> Findings {
    Findings { damage: found.damage, unchecked: found.unchecked }
}

impl ImageScope for PagesToCheck {
    fn bytes(&self) -> u64 {
        self.scope.bytes()
    }

    fn check_files(
        &mut self,
        files: &Arc<dyn DataDir>,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        let (small, _) = self.scope.split();
        check_pages(&self.control, &**files, &small, tick).map(told)
    }

    fn check_running(
        &mut self,
        server: &dyn Server,
        deadline: Duration,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        let server = (server as &dyn Any)
            .downcast_ref::<RunningServer>()
            .ok_or_else(|| Failure::internal("a server of another connector"))?;
        let mut found = server.with(|server| check_running(server, &self.scope, deadline, tick))?;
        self.read = std::mem::take(&mut found.read);
        Ok(told(found))
    }

    fn check_rest(
        &mut self,
        files: &Arc<dyn DataDir>,
        tick: &mut Tick<'_>,
    ) -> Result<Findings, Failure> {
        if !self.control.data_checksums {
            return Ok(Findings::default());
        }
        let (_, large) = self.scope.split();
        check_pages(&self.control, &**files, &large.without(&self.read), tick).map(told)
    }
}
