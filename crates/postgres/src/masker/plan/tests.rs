use super::*;
use crate::masker::facts::Fields;

/// Its oid, its name, its kind (`p` if it is partitioned, `i` if it is a partition), its parents and its columns.
type Table = (Oid, &'static str, &'static str, &'static [Oid], &'static [&'static str]);

fn facts(tables: &[Table]) -> Facts {
    let mut facts = Facts::default();
    for (oid, name, kind, parents, columns) in tables {
        let text = |text: &str| Some(text.to_owned());
        let is = |what: &str| text(if kind.contains(what) { "t" } else { "f" });
        let relkind = text(if kind.contains('p') { "p" } else { "r" });
        let key = kind.contains('p').then(|| "RANGE (a)".to_owned());
        let mut row = vec![text(&oid.to_string()), text("public"), text(name), relkind, is("i")];
        row.extend([text("p"), text("heap"), None, text("app"), text("10"), None, None]);
        row.extend([key, text("1"), text("f")]);
        facts.add(row, parents, columns);
    }
    facts
}

fn plan(facts: Facts, tables: &str) -> Plan {
    let rules = Ruleset::parse(&format!("version: 1\nkey: main\ntables:\n{tables}")).unwrap();
    Plan::new(facts, &rules, &MaskingKey::new(b"key"))
}

fn sources(plan: &Plan) -> Vec<(Vec<Oid>, Option<Oid>)> {
    let mut jobs: Vec<_> = plan.jobs().into_iter().map(|job| (job.sources, job.through)).collect();
    jobs.sort();
    jobs
}

const PARTITIONED: [Table; 4] = [
    (1, "events", "p", &[], &["a", "b"]),
    (2, "events_1", "i", &[1], &["b", "a"]),
    (3, "events_2", "pi", &[1], &["a", "b"]),
    (4, "events_2_1", "i", &[3], &["a", "b"]),
];

#[test]
fn partitions_are_written_one_by_one_unless_rows_move() {
    let stays = plan(facts(&PARTITIONED), "  public.events: {columns: {b: email}}\n");
    assert_eq!(sources(&stays), [(vec![2], None), (vec![4], None)]);
    let moves = plan(facts(&PARTITIONED), "  public.events: {columns: {a: email}}\n");
    assert_eq!(sources(&moves), [(vec![2, 4], Some(1))]);
    let reading = moves.reading(2, 1).unwrap();
    assert!(reading.query.starts_with("SELECT \"a\", \"b\", ctid FROM ONLY"), "{}", reading.query);
    let reading = stays.reading(2, 2).unwrap();
    assert!(reading.query.starts_with("SELECT \"b\", \"a\", ctid FROM ONLY"), "{}", reading.query);
    assert!(reading.query.ends_with(" AS \"events\""), "{}", reading.query);
    assert_eq!(reading.rows.groups[0].layout, [1, 0]);
}

#[test]
fn what_inherits_has_the_nearest_rule() {
    let tables: [Table; 2] =
        [(1, "animals", "", &[], &["a", "b"]), (2, "dogs", "", &[1], &["a", "b", "c"])];
    let rules = "  public.animals: {columns: {a: email, b: email}}\n  \
                 public.dogs: {where: c > 'x', columns: {a: character-mapping}}\n";
    let plan = plan(facts(&tables), rules);
    assert_eq!(sources(&plan), [(vec![1], None), (vec![2], None)]);
    let reading = plan.reading(2, 2).unwrap();
    let wanted = "SELECT \"a\", \"b\", \"c\", (c > 'x') IS TRUE, ctid FROM ONLY";
    assert!(reading.query.starts_with(wanted), "{}", reading.query);
    let groups: Vec<_> = reading.rows.groups.iter().map(|group| group.flag).collect();
    assert_eq!(groups, [Some(3), None]);
    let group_of = |at: usize| match &reading.rows.written[at].change {
        Change::Masked { group, .. } => Some(*group),
        _ => None,
    };
    assert_eq!([group_of(0), group_of(1), group_of(2)], [Some(0), Some(1), None]);
}

#[test]
fn what_is_emptied_goes_with_all_below_it() {
    let plan = plan(facts(&PARTITIONED), "  public.events: {empty: true}\n");
    assert_eq!(plan.empties().into_iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(plan.jobs().is_empty());
}

impl Facts {
    fn add(&mut self, row: Vec<Option<String>>, parents: &[Oid], columns: &[&str]) {
        let oid: Oid = Fields(row.clone()).number(0);
        self.add_relations(vec![row]);
        let text = |text: &str| Some(text.to_owned());
        for (number, name) in columns.iter().enumerate() {
            let mut row = vec![text(&oid.to_string()), text(&(number + 1).to_string()), text(name)];
            row.extend([text("f"), text("text"), None, text("text"), text("S"), text("-1")]);
            row.extend([text("f"), None, text(""), None, None]);
            self.add_columns(vec![row]);
        }
        let rows =
            parents.iter().map(|parent| vec![text(&oid.to_string()), text(&parent.to_string())]);
        self.add_parents(rows.collect());
    }
}
