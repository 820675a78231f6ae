//! VDBs that other hosts reach: by TLS alone, with a password, and only from where they may.

use anyhow::{Context, Result, ensure};
use offshoot_api::Vdb;
use offshoot_os::process::{Spec, run};
use offshoot_rig::{SourceOptions, find_newest};
use offshoot_testbed::Testbed;
use std::path::PathBuf;
use std::time::Duration;

/// A client of a VDB, which connects to an address from the same.
struct Elsewhere<'a> {
    bed: &'a Testbed,
    vdb: Vdb,
    certificate: PathBuf,
}

impl<'a> Elsewhere<'a> {
    fn of(bed: &'a Testbed, vdb: Vdb) -> Result<Self> {
        let network = vdb.network.as_ref().context("it is reached by nobody")?;
        let certificate = bed.scratch.path().join(format!("{}.crt", vdb.name));
        std::fs::write(&certificate, &network.certificate)?;
        Ok(Elsewhere { bed, vdb, certificate })
    }

    /// What a query answers, or why it does not.
    fn asks(
        &self,
        host: &str,
        user: &str,
        tls: &str,
    ) -> Result<std::result::Result<String, String>> {
        let uri = url::Url::parse(&self.vdb.uri)?;
        let (password, port) = (uri.password().context("a password")?, self.vdb.port);
        let target = format!(
            "host={host} port={port} user={user} dbname={} sslmode={tls} sslrootcert={} connect_timeout=10",
            uri.path().trim_start_matches('/'),
            self.certificate.display()
        );
        let spec = Spec::new(find_newest()?.join("psql"))
            .args(["--no-psqlrc", "--tuples-only", "--no-align", "--command"])
            .arg("SELECT version FROM pg_catalog.pg_stat_ssl WHERE pid = pg_backend_pid()")
            .arg(target)
            .env("PGPASSWORD", password);
        let output = run(&spec, Duration::from_secs(30))?;
        Ok(match output.success() {
            true => Ok(output.stdout_text().trim().to_owned()),
            false => Err(output.stderr_text()),
        })
    }

    fn is_let_in(&self, host: &str, tls: &str) -> Result<()> {
        let answer = self.asks(host, "offshoot", tls)?;
        ensure!(answer.as_deref() == Ok("TLSv1.3"), "{host} {tls}: {answer:?}");
        Ok(())
    }

    fn is_refused(&self, host: &str, user: &str, tls: &str, because: &str) -> Result<()> {
        let answer = self.asks(host, user, tls)?;
        let refusal = answer.err().with_context(|| format!("{host} {user} {tls}: let in"))?;
        ensure!(refusal.contains(because), "{host} {user} {tls}: {refusal}");
        Ok(())
    }

    /// As it is now.
    fn again(&self) -> Result<Elsewhere<'a>> {
        Elsewhere::of(self.bed, self.bed.vdb(&self.vdb.name)?)
    }
}

mod needs_root {
    use super::*;

    const HERE: &str = "10.99.0.1";
    const THERE: &str = "10.98.0.1";

    #[test]
    #[ignore = "needs root"]
    fn a_vdb_is_reached_by_those_who_may_and_by_tls_alone() -> Result<()> {
        offshoot_testbed::enter_own_network(&["10.99.0.1/24", "10.98.0.1/24"])?;
        let bed =
            Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] })?;
        bed.link("prod")?;
        refused(&bed)?;

        let one = bed.provision("one", "prod", &["--listen", HERE, "--allow", "10.99.0.0/24"])?;
        let one = Elsewhere::of(&bed, one)?;
        one.is_let_in(HERE, "verify-full")?;
        one.is_refused(HERE, "offshoot", "disable", "no encryption")?;
        one.is_refused(HERE, "offshoot_engine", "require", "pg_hba.conf rejects")?;
        one.is_refused(THERE, "offshoot", "require", "Connection refused")?;
        // On this host it is as before.
        ensure!(bed.open("one")?.number("SELECT 1")? == 1);

        let all = ["--listen", "0.0.0.0", "--allow", "10.98.0.1,10.97.0.0/16"];
        let all = Elsewhere::of(&bed, bed.provision("all", "prod", &all)?)?;
        all.is_let_in(THERE, "verify-ca")?;
        all.is_refused(HERE, "offshoot", "require", "no pg_hba.conf entry")?;
        // Each VDB is known by its own.
        let mixed =
            Elsewhere { bed: &bed, vdb: all.vdb.clone(), certificate: one.certificate.clone() };
        mixed.is_refused(THERE, "offshoot", "verify-ca", "certificate verify failed")?;

        // It stays what it is known by.
        bed.engine.command(["vdb", "refresh", "one"])?;
        one.is_let_in(HERE, "verify-full")?;
        bed.engine.command(["vdb", "stop", "one"])?;
        bed.engine.command(["vdb", "start", "one"])?;
        one.again()?.is_let_in(HERE, "verify-full")?;
        one.is_let_in(HERE, "verify-full")?;
        branch(&bed, &one)
    }

    #[test]
    #[ignore = "needs root"]
    fn a_gateway_lets_in_whom_the_server_would() -> Result<()> {
        offshoot_testbed::enter_own_network(&["10.99.0.1/24", "10.98.0.1/24"])?;
        let bed =
            Testbed::with(SourceOptions { bin_dir: find_newest()?, scale: 0, settings: vec![] })?;
        bed.link("prod")?;
        let wish = ["--gateway", "--listen", "0.0.0.0", "--allow", "10.99.0.0/24"];
        let one = Elsewhere::of(&bed, bed.provision("one", "prod", &wish)?)?;
        let comes_in = |host: &str, tls: &str| -> Result<()> {
            let answer = one.asks(host, "offshoot", tls)?;
            ensure!(answer.is_ok(), "{host} {tls}: {answer:?}");
            Ok(())
        };
        for _ in 0..2 {
            comes_in(HERE, "verify-ca")?;
            one.is_refused(HERE, "offshoot", "disable", "need TLS")?;
            one.is_refused(HERE, "offshoot_engine", "require", "pg_hba.conf rejects")?;
            one.is_refused(THERE, "offshoot", "require", "not allowed")?;
            comes_in("127.0.0.1", "disable")?;
            bed.engine.command(["vdb", "refresh", "one"])?;
        }
        // The server itself is on loopback alone.
        ensure!(bed.open("one")?.text("SHOW listen_addresses")? == "127.0.0.1");
        Ok(())
    }

    /// What cannot be, or would let in anybody.
    fn refused(bed: &Testbed) -> Result<()> {
        let begin = ["vdb", "provision", "bad", "--from", "prod"];
        let mut wishes = vec![
            vec!["--listen", HERE],
            vec!["--allow", "10.0.0.0/8"],
            vec!["--listen", "10.96.0.1", "--allow", "10.0.0.0/8"],
            vec!["--listen", HERE, "--allow", "10.99.0.1/24"],
            vec!["--listen", HERE, "--allow", "10.0.0.0/8", "--superuser"],
        ];
        for wish in &mut wishes {
            let refused = bed.refused(&[&begin[..], wish].concat());
            ensure!(refused.code == "invalid_input", "{wish:?}: {refused}");
        }
        Ok(())
    }

    /// A branch is reached by nobody, and has not its parent's key.
    fn branch(bed: &Testbed, parent: &Elsewhere<'_>) -> Result<()> {
        let branch = bed.provision("branch", &parent.vdb.name, &["--superuser"])?;
        ensure!(branch.network.is_none());
        let files = bed.open("branch")?.rows("SELECT pg_ls_dir('.')")?.concat();
        ensure!(files.contains(&"PG_VERSION".to_owned()));
        ensure!(!files.iter().any(|name| name.contains("tls")), "{files:?}");
        let branch = Elsewhere { bed, vdb: branch, certificate: parent.certificate.clone() };
        branch.is_refused(HERE, "offshoot", "require", "Connection refused")
    }
}
