//! What a VDB that other hosts reach shows them. Its key is in the data directory, which only the engine and the
//! server see; a superuser of the VDB could read it there, so that each VDB has one of its own.

use crate::files::{remove_file, write_file};
use offshoot_connector::{DataDir, Network};
use offshoot_types::Failure;

/// The certificate, in PEM.
pub(crate) const CERTIFICATE_FILE: &str = "offshoot.tls.crt";
/// Its key.
pub(crate) const KEY_FILE: &str = "offshoot.tls.key";

/// Writes both; removes those of a parent from the files of its branch.
///
/// # Errors
/// `Internal` when a file cannot be written.
pub(crate) fn write(dir: &dyn DataDir, network: Option<&Network>) -> Result<(), Failure> {
    let Some(network) = network else {
        return [CERTIFICATE_FILE, KEY_FILE].iter().try_for_each(|name| remove_file(dir, name));
    };
    write_file(dir, CERTIFICATE_FILE, &network.certificate)?;
    write_file(dir, KEY_FILE, network.key.reveal())
}
