//! The console in a real browser, against a real engine and real sources: `console/tests/flows.mjs` says what is tried.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // the browser is started by the test

mod needs_browser {
    use offshoot_rig::{Source, SourceOptions, find_newest};
    use offshoot_testbed::{Testbed, binary, third};
    use std::path::Path;
    use std::process::Command;
    use std::time::Duration;

    /// Runs the flows of an extent in Chromium.
    fn try_flows(extent: &str) {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../console/tests");
        assert!(tests.join("node_modules").exists(), "first: scripts/test-console.sh");
        let bed = Testbed::start().unwrap();
        let other = Source::start(
            &bed.scratch,
            SourceOptions { bin_dir: find_newest().unwrap(), scale: 0, settings: vec![] },
        )
        .unwrap();
        let writer = bed.source.start_writes(Duration::from_millis(50));
        bed.link("shop").unwrap();
        let east = third(&bed).unwrap();
        assert!(writer.wait_for(60, Duration::from_secs(60)));
        let ended = Command::new("node")
            .arg(tests.join("flows.mjs"))
            .arg(extent)
            .env("OFFSHOOT_BIN", binary())
            .env("OFFSHOOT_POOL", bed.engine.pool())
            .env("EAST_POOL", east.pool())
            .env("EAST_ADDRESS", east.options.listen.replace("0.0.0.0", "127.0.0.1"))
            .env("SHOP_SUPERUSER_URI", bed.source.superuser_uri("postgres"))
            .env("SOURCE_URI", other.link_uri())
            .env("SOURCE_PASSWORD", other.link_password())
            .env("SOURCE_SUPERUSER_URI", other.superuser_uri("postgres"))
            .env("SHOTS", bed.scratch.path())
            .status()
            .unwrap();
        writer.stop();
        assert!(ended.success(), "{ended}; the engine's log ends:\n{}", bed.engine.log_end(40));
    }

    #[test]
    #[ignore = "needs Chromium and Node.js; scripts/test.sh runs it"]
    fn a_vdb_is_made_from_the_time_line() {
        try_flows("short");
    }

    mod whole {
        #[test]
        #[ignore = "needs Chromium and Node.js; scripts/test.sh --full runs it"]
        fn every_flow_works() {
            super::try_flows("whole");
        }

        #[test]
        #[ignore = "needs Chromium and Node.js; scripts/test.sh --full runs it"]
        fn what_is_searched_compared_told_and_sent() {
            super::try_flows("more");
        }
    }
}
