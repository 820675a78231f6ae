use super::*;
use clap::CommandFactory;

fn each(command: &clap::Command, path: &str, check: &mut dyn FnMut(&clap::Command, &str)) {
    check(command, path);
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        each(inner, &format!("{path} {}", inner.get_name()), check);
    }
}

#[test]
fn the_grammar_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_has_help_with_an_example_of_itself() {
    let mut count = 0;
    each(&Cli::command(), "offshoot", &mut |command, path| {
        let example = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(example.contains(path), "{path}: {example}");
        assert!(command.get_about().is_some(), "{path} says nothing about itself");
        count += 1;
    });
    assert!(count > 25, "{count} commands");
}

#[test]
fn every_command_takes_json_and_the_engine_before_or_after() {
    for args in [
        "offshoot --json --pool /p vdb list",
        "offshoot vdb --json --pool /p list",
        "offshoot vdb list --pool /p --json",
    ] {
        let cli = Cli::try_parse_from(args.split(' ')).unwrap();
        assert!(cli.target.json, "{args}");
        assert_eq!(cli.target.pool, Some(PathBuf::from("/p")), "{args}");
    }
}

#[test]
fn wrong_values_and_two_moments_are_refused() {
    for args in [
        "vdb provision dev",
        "vdb provision dev --from prod --at tomorrow",
        "vdb provision dev --from prod --lsn 12",
        "vdb provision dev --from prod --snapshot 7",
        "vdb provision dev --from prod --set work_mem",
        "vdb provision dev --from prod --memory much",
        "vdb provision dev --from prod --latest --xid 7",
        "vdb provision dev --from prod --port 0",
        "vdb rewind dev",
        "vdb rewind dev --undo --snapshot snapshot-1",
        "vdb rewind dev --undo --bookmark release",
        "vdb provision dev --from prod --latest --bookmark release",
        "bookmark create release",
        "dsource link prod",
        "dsource link prod --source mysql://a@b/c",
        "dsource link prod --source db.example.com",
        "dsource link prod --source postgresql://a@b/c --snapshot-every often",
        "policy set prod",
        "policy set prod --keep-all ever",
        "policy set prod --log 7",
        "policy set prod --quota much",
        "snapshot show 7",
        "job show snapshot-7",
        "serve --listen here",
        "demo --scale 0",
        "status --pool /p --server 127.0.0.1:1",
    ] {
        let all = std::iter::once("offshoot").chain(args.split(' '));
        assert!(Cli::try_parse_from(all).is_err(), "{args}");
    }
}
