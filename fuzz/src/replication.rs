//! What comes from other engines.

use crate::target::{Target, sealed};
use offshoot_dataset::{Becomes, Ino, NewInode, Store, StoreOptions};
use offshoot_domain::Manifest;
use offshoot_format::links::links;
use offshoot_format::tree::{MAP_FAN_OUT, Value, children, encode_map};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_replication::archive::{self, Archive};
use offshoot_replication::wire::{Frame, FrameType, HEADER_LEN, Header, Want};
use offshoot_types::BlockHash;
use std::sync::{Arc, LazyLock};

pub(crate) const TARGETS: &[Target] = &[
    Target { name: "archive", run: archive, seeds: archive_seeds },
    Target { name: "frame", run: frame, seeds: frame_seeds },
    Target { name: "links", run: links_of_node, seeds: links_seeds },
    Target { name: "manifest", run: manifest, seeds: manifest_seeds },
];

/// A store that archives come into. What is not sound must leave it as it is.
static STORE: LazyLock<Arc<Store>> = LazyLock::new(|| small_store(1));

fn small_store(seed: u64) -> Arc<Store> {
    let mut options =
        StoreOptions { log_file_size: 64 << 10, background: false, ..StoreOptions::default() };
    options.pool.background = false;
    options.pool.segment_size = 1 << 20;
    options.pool.reserve = Some(1 << 20);
    options.pool.cache_size = 1 << 20;
    let disk: Arc<dyn Disk> = SimDisk::new(seed);
    Store::create(&disk, &options).expect("nothing fails on this disk");
    Store::open(disk, &options, Arc::new(SystemClock)).expect("nothing fails on this disk")
}

/// The same with checksums of frames put right, and the digest at the end.
fn put_right(bytes: &[u8]) -> Vec<u8> {
    let (mut bytes, mut at) = (bytes.to_vec(), HEADER_LEN);
    while let Some(header) = bytes.get(at..at + HEADER_LEN) {
        let Ok(header) = <&[u8; HEADER_LEN]>::try_from(header) else { break };
        let Ok(header) = Header::decode(header) else { break };
        let end = at + HEADER_LEN + header.payload_len;
        if end > bytes.len() {
            break;
        }
        if header.kind == FrameType::End && header.payload_len == 32 {
            let digest = *blake3::hash(&bytes[..at]).as_bytes();
            bytes[at + HEADER_LEN..end].copy_from_slice(&digest);
        }
        bytes = sealed(&bytes, at + 4..end, at);
        at = end;
    }
    bytes
}

fn archive(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), put_right(bytes)] {
        let Ok(archive) = Archive::open(&bytes[..]) else { continue };
        let becomes = vec![Becomes::Snapshot; archive.states()];
        let before = STORE.snapshots().len();
        match archive.receive(&STORE, &becomes, &mut |_| Ok(())) {
            Ok((received, _)) => {
                assert_eq!(STORE.snapshots().len(), before + received.len());
                for snapshot in STORE.snapshots() {
                    STORE.delete_snapshot(snapshot.id).expect("it is there");
                }
            }
            Err(_) => assert_eq!(STORE.snapshots().len(), before),
        }
    }
}

fn archive_seeds() -> Vec<Vec<u8>> {
    let store = small_store(2);
    let made = || -> Result<Vec<u8>, offshoot_replication::Error> {
        let id = store.create_dataset()?;
        let dataset = store.dataset(id)?;
        let file = dataset.create(Ino::ROOT, b"file", &NewInode::file(0o600))?.ino;
        dataset.write(file, 0, &[7; 8192 * 3])?;
        dataset.write(file, 8192, &[8; 100])?;
        let held = [store.hold_snapshot(store.snapshot(id)?)?];
        let mut bytes = Vec::new();
        archive::write(&mut bytes, b"{}", &held, &mut |_| Ok(()))?;
        Ok(bytes)
    };
    vec![made().expect("nothing fails on this disk")]
}

fn frame(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), sealed(bytes, 4..bytes.len().max(4), 0)] {
        let Some((header, payload)) = bytes.split_first_chunk::<HEADER_LEN>() else { return };
        let Ok(decoded) = Header::decode(header) else { continue };
        let Ok(frame) = decoded.frame(header, payload.to_vec()) else { continue };
        if let Frame::Block(block) = &frame {
            let _ = block.clone().open();
        }
        let again = frame.encode();
        // Only a block says how long its content is.
        if let Frame::Block(_) = &frame {
            assert_eq!(again[12..], bytes[12..]);
        }
    }
}

fn frame_seeds() -> Vec<Vec<u8>> {
    let end = Frame::End([7; 32]).encode();
    let want = Frame::Want(Want { state: 1, path: vec![2, 3], children: vec![4, 5] }).encode();
    vec![Frame::Manifest(b"{}".to_vec()).encode(), end, want]
}

fn links_of_node(bytes: &[u8]) {
    if let Ok(links) = links(bytes) {
        let names: Vec<BlockHash> = links.into_iter().map(|(name, _)| name).collect();
        assert_eq!(Ok(names), children(bytes), "what is sent is what is counted");
    }
}

fn links_seeds() -> Vec<Vec<u8>> {
    let mut map = [BlockHash::ZERO; MAP_FAN_OUT];
    map[3] = BlockHash([7; 32]);
    // What is no inode has content alone.
    let value = Value { children: vec![map[3]], bytes: vec![0; 200] };
    let entry = offshoot_format::tree::LeafEntry { key: vec![3; 9], value };
    vec![encode_map(0, &map), encode_map(1, &map), offshoot_format::tree::encode_leaf(&[entry])]
}

/// The first byte: how many states there are.
fn manifest(bytes: &[u8]) {
    let Some((states, text)) = bytes.split_first() else { return };
    if let Ok(manifest) = Manifest::read(text, usize::from(*states)) {
        let again = serde_json::to_vec(&manifest).expect("a manifest is JSON");
        assert_eq!(Manifest::read(&again, usize::from(*states)), Ok(manifest));
    }
}

fn manifest_seeds() -> Vec<Vec<u8>> {
    let text = r#"{"version":1,"engine":"00112233445566778899aabbccddeeff","as_of":"2026-11-25T00:00:00Z","dsource":
        {"id":"dsource-1","name":"shop","connector":"postgres","source":"","server_version":"16","identity":"7",
         "connector_state":{"version":0,"data":null},"created_at":"2026-11-25T00:00:00Z","masked":false,
         "synced_to":null,"timeflow":"timeflow-1","snapshots":[],"timeflows":[{"id":"timeflow-1","log":[],"state":0,
         "started_at":"2026-11-25T00:00:00Z","ended_at":null}]}}"#;
    let mut seed = vec![1];
    seed.extend_from_slice(text.as_bytes());
    vec![seed]
}

#[cfg(test)]
mod tests;
