use super::*;

#[test]
fn seeds_are_accepted() {
    for seed in manifest_seeds() {
        Manifest::read(&seed[1..], 1).unwrap();
    }
    for seed in archive_seeds() {
        assert_eq!(put_right(&seed), seed);
        let archive = Archive::open(&seed[..]).unwrap();
        archive.receive(&small_store(3), &[Becomes::Snapshot], &mut |_| Ok(())).unwrap();
    }
    for seed in links_seeds() {
        links(&seed).unwrap();
    }
}
