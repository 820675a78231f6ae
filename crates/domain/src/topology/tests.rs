use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

/// `peers` as `>far` for one that is sent to, and `<west` for one that sends; their ids are their names.
fn says(engine: &str, seconds: i64, peers: &[&str]) -> Neighbourhood {
    let peer = |text: &&str| Neighbour {
        engine: text[1..].to_owned(),
        name: text[1..].parse().unwrap(),
        is_sent_to: text.starts_with('>'),
        sends: text.starts_with('<'),
    };
    Neighbourhood {
        engine: engine.to_owned(),
        as_of: at(seconds),
        peers: peers.iter().map(peer).collect(),
    }
}

#[test]
fn the_newest_word_of_each_engine_counts_and_nobody_s_of_this_one() {
    let own = says("b", 100, &["<a", ">c"]);
    let heard = [
        says("a", 10, &[]),
        says("a", 20, &[">b"]),
        says("a", 15, &[">x"]),
        says("b", 90, &[">x"]),
        says("old", -40 * 86_400, &[">b"]),
        says("ahead", 86_400, &[">b"]),
    ];
    assert_eq!(newest(own.clone(), heard), [own, says("a", 20, &[">b"])]);
}

#[test]
fn engines_are_called_as_on_the_shortest_way_to_them() {
    let known = newest(
        says("b", 0, &["<a", ">c"]),
        [says("c", 0, &["<b", ">d", ">a"]), says("alone", 0, &[">other"])],
    );
    let topology = Topology::of(&known);
    let names: Vec<Option<&str>> = topology.engines.iter().map(|one| one.name.as_deref()).collect();
    assert_eq!(names, [None, Some("a"), Some("c"), Some("c/d")]);
    let heard: Vec<bool> = topology.engines.iter().map(|one| one.as_of.is_some()).collect();
    assert_eq!(heard, [true, false, true, false]);
    let links = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")];
    let links = links.map(|(from, to)| (from.to_owned(), to.to_owned()));
    assert_eq!(topology.links, BTreeSet::from(links));
}
