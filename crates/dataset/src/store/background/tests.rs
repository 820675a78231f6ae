use super::super::Store;
use super::super::tests::{create, options};
use super::*;
use crate::{NewInode, StoreOptions};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_types::Ino;

#[test]
fn what_is_light_beside_a_dataset_that_is_being_committed_is_not_due() {
    let disk: Arc<dyn Disk> = create(1);
    // As soon as anything is unwritten, it is more than half of the bound.
    let options = StoreOptions { dirty_bound: 64 << 10, ..options() };
    let store = Store::open(disk, &options, Arc::new(SystemClock)).unwrap();
    let [heavy, light, empty] = [400 << 10, 8 << 10, 0].map(|bytes: usize| {
        let dataset = store.dataset(store.create_dataset().unwrap()).unwrap();
        if bytes > 0 {
            let file = dataset.create(Ino::ROOT, b"file", &NewInode::file(0o600)).unwrap();
            dataset.write(file.ino, 0, &vec![7; bytes]).unwrap();
        }
        dataset
    });
    let mut state = ScheduleState::default();
    let due = |state: &ScheduleState| {
        find_due(&store.ground, &store.loaded, state, 0).map(|dataset| dataset.id())
    };
    assert_eq!(due(&state), Some(heavy.id()));
    state.begin(heavy.id());
    assert_eq!(due(&state), None, "it would be committed for as long as the heavy one is");
    heavy.commit().unwrap();
    light.commit().unwrap();
    assert_eq!(empty.dirty_bytes(), 0);
}
