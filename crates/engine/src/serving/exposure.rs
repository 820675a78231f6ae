//! What a VDB shows other hosts: a certificate that is made when it first listens to them, and stays through refresh
//! and rewind, so that clients may keep it.

use crate::core::certificate;
use crate::core::keys::tls_key;
use crate::serving::Serving;
use offshoot_connector::Network;
use offshoot_domain::Vdb;
use offshoot_types::Failure;
use std::net::IpAddr;

/// How other hosts reach a VDB, if they do.
pub fn network(serving: &Serving, vdb: &Vdb) -> Result<Option<Network>, Failure> {
    let Some(exposure) = vdb.exposure.clone() else { return Ok(None) };
    let kept = serving.catalog.secret(&tls_key(vdb.id))?;
    if let Some(key) = kept.filter(|_| !vdb.certificate.is_empty()) {
        return Ok(Some(Network { exposure, certificate: vdb.certificate.clone(), key }));
    }
    let addresses = exposure.addresses().into_iter().filter(|address| !address.is_unspecified());
    let names: Vec<_> = addresses.map(|address: IpAddr| address.to_string()).collect();
    let (certificate, key) = certificate::make(names)?;
    // A certificate without its key would be of no use: the key comes first.
    serving.catalog.put_secret(&tls_key(vdb.id), &key)?;
    let shown = certificate.clone();
    serving.catalog.update(vdb.id, |vdb: &mut Vdb| vdb.certificate = shown)?;
    Ok(Some(Network { exposure, certificate, key }))
}
