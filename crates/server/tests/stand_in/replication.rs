//! Archives of the stand-in: text.

use offshoot_api::Dsource;
use offshoot_server::{ArchiveReader, ArchiveWriter};
use offshoot_types::{ErrorKind, Failure};

/// How its archives begin.
const BEGIN: &str = "archive of ";

pub fn export(dsource: &Dsource) -> Result<ArchiveWriter, Failure> {
    let name = dsource.name.clone();
    Ok(Box::new(move |out| {
        write!(out, "{BEGIN}{name}").map_err(|error| Failure::internal(error.to_string()))
    }))
}

/// The name of what came.
pub fn import(mut archive: ArchiveReader, namespace: &str) -> Result<String, Failure> {
    let mut text = String::new();
    archive.read_to_string(&mut text).map_err(|error| Failure::internal(error.to_string()))?;
    let name = text.strip_prefix(BEGIN).ok_or_else(|| {
        Failure::new(ErrorKind::InvalidInput, "this is no archive of Offshoot", "name one")
    })?;
    Ok(format!("{namespace}/{name}"))
}
