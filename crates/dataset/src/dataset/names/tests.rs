use super::*;
use crate::tests::{create, dice, open};
use std::collections::BTreeSet;

/// Every name, in pages of this many.
fn listed(dataset: &Dataset, page: usize) -> Vec<Vec<u8>> {
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let entries = dataset.readdir(Ino::ROOT, cookie, page).unwrap();
        let Some(last) = entries.last() else { return names };
        cookie = last.cookie;
        names.extend(entries.into_iter().map(|entry| entry.name));
    }
}

/// As while a commit is under way: what was changed so far is frozen.
fn freeze(dataset: &Dataset) {
    let root = dataset.inode(Ino::ROOT).unwrap();
    root.state.write().freeze(FileKind::Directory);
}

/// Names in the tree, in the frozen and in the dirty layer, and removed in each of the two.
#[test]
fn a_listing_in_the_middle_of_a_commit_is_complete() {
    let (_dir, disk) = create();
    let store = open(&disk);
    let mut dice = dice(11);
    for _ in 0..20 {
        let dataset = store.dataset(store.create_dataset().unwrap()).unwrap();
        let mut model = BTreeSet::new();
        for stage in 0..3 {
            for _ in 0..200 {
                let name = format!("name-{}", dice(150)).into_bytes();
                if model.remove(&name) {
                    dataset.unlink(Ino::ROOT, &name).unwrap();
                } else {
                    dataset.create(Ino::ROOT, &name, &NewInode::file(0o600)).unwrap();
                    model.insert(name);
                }
            }
            match stage {
                0 => dataset.commit().unwrap(),
                1 => freeze(&dataset),
                _ => {}
            }
            for page in [1, 2, 7, 40, 1000] {
                let names = listed(&dataset, page);
                assert_eq!(names.len(), model.len(), "in pages of {page}");
                assert!(names.iter().all(|name| model.contains(name)));
            }
        }
    }
}
