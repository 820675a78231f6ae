//! What checks of images promise.

use crate::{Harness, Image, Linked, PATIENCE, Random};
use offshoot_connector::{Findings, Role, StopMode};
use std::io;
use std::ops::Range;

/// Checks an image as the engine does: its files, a server on a clone of it, the other files.
fn check(linked: &Linked<'_>, image: &Image, same: bool) -> (u64, Findings) {
    let checker = linked.connector.image_checker().expect("it was asked before");
    let spec = linked.spec(image);
    let differing = |_: &str| -> io::Result<Option<Vec<Range<u64>>>> { Ok(same.then(Vec::new)) };
    let mut scope = checker.scope(&spec, &differing).unwrap();
    let bytes = scope.bytes();
    let mut seen = 0;
    let mut tick = |more| {
        seen += more;
        Ok(())
    };
    let mut found = scope.check_files(&spec.files, &mut tick).unwrap();
    if found.sound() {
        let clone = linked.clone_of(image);
        let server = linked.connector.start(linked.spec(&clone), Role::Private).unwrap();
        server.wait_ready(PATIENCE).unwrap();
        found.extend(scope.check_running(&*server, PATIENCE, &mut tick).unwrap());
        server.stop(StopMode::Immediate, PATIENCE).unwrap();
    }
    if found.sound() {
        found.extend(scope.check_rest(&spec.files, &mut tick).unwrap());
    }
    (bytes, found)
}

/// Sound: nothing is found, and where nothing differs from an image that was checked, little is read.
pub fn a_sound_image_passes_and_a_flipped_bit_is_found(harness: &dyn Harness) {
    let mut linked = Linked::new(harness);
    if linked.connector.image_checker().is_none() {
        return println!("{} has no checks of images", linked.connector.kind());
    }
    linked.write(20, 2000, &mut Random::fresh());
    linked.receive();
    let image = linked.finished(linked.commits()[19].end);
    let (bytes, found) = check(&linked, &image, false);
    assert!(found.sound() && bytes > 0, "{bytes} {found:?}");
    let (bytes, found) = check(&linked, &image, true);
    assert!(found.sound() && bytes == 0, "{bytes} {found:?}");
    harness.damage(&image.data);
    let (_, found) = check(&linked, &image, false);
    assert!(!found.sound(), "the damage was not found");
}
