use super::*;
use crate::arguments::BenchCommand;
use crate::benchmarks::parse;

#[test]
fn every_line_of_the_selection_is_a_benchmark() {
    let setting = Setting {
        out: None,
        cache_size: "1GiB".into(),
        direct_size: None,
        binary: None,
        seed: 3,
        require_goals: false,
    };
    for words in SELECTION {
        let command =
            parse(line(words, &setting)).unwrap_or_else(|error| panic!("{words}: {error:#}"));
        assert!(!matches!(command, BenchCommand::Quick(_)), "the selection may not hold itself");
    }
}
