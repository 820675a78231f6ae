//! A pool on a simulated disk, and nodes simple enough to check by hand.
#![allow(dead_code)] // each test binary uses its own part

use offshoot_format::label::Label;
use offshoot_format::segment::{Layout, PAGE_LEN, decode_segment_header};
use offshoot_os::SystemClock;
use offshoot_os::disk::Disk;
use offshoot_os::disk::sim::SimDisk;
use offshoot_pool::{
    DataKey, DecodeError, NodeChildren, Pool, PoolCheck, PoolOptions, Result, ScrubState,
    Transaction,
};
use offshoot_types::BlockHash;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A node is `N`, seven bytes of salt, then its children's hashes.
pub struct Nodes;

impl NodeChildren for Nodes {
    fn children(&self, node: &[u8]) -> std::result::Result<Vec<BlockHash>, DecodeError> {
        if node.first() != Some(&b'N') || node.len() % 32 != 8 {
            return Err(DecodeError::new("test node", "not a node"));
        }
        Ok(node[8..].chunks_exact(32).map(|hash| BlockHash(hash.try_into().unwrap())).collect())
    }
}

pub fn node(salt: u32, children: &[BlockHash]) -> Vec<u8> {
    let mut bytes = vec![b'N', 0, 0, 0];
    bytes.extend_from_slice(&salt.to_le_bytes());
    children.iter().for_each(|child| bytes.extend_from_slice(&child.0));
    bytes
}

/// Small files and no background thread, so that a run is the same every time.
pub fn options() -> PoolOptions {
    PoolOptions {
        cache_size: 4 << 20,
        segment_size: 256 << 10,
        reserve: Some(1 << 20),
        spare: Some(128 << 10),
        background: false,
        checkpoint_log_min: 4 << 10,
        ..PoolOptions::default()
    }
}

pub fn create(disk: &Arc<SimDisk>) -> Arc<Pool> {
    Pool::create(&**disk, &options()).unwrap();
    open(disk).unwrap()
}

/// The key of encrypted pools.
pub fn key() -> DataKey {
    DataKey::of([0xA5; 32])
}

pub fn create_encrypted(disk: &Arc<SimDisk>) -> Arc<Pool> {
    let options = PoolOptions { data_key: Some(key()), ..options() };
    Pool::create(&**disk, &options).unwrap();
    open(disk).unwrap()
}

/// The key of this pool, if its label says that it has one.
pub fn key_of(disk: &SimDisk) -> Option<DataKey> {
    let label = Label::decode(&disk.content("label")?).ok()?;
    label.is_encrypted().then(key)
}

pub fn open(disk: &Arc<SimDisk>) -> Result<Arc<Pool>> {
    open_with(disk, &options())
}

/// Opens the pool; with its key, if it is encrypted.
pub fn open_with(disk: &Arc<SimDisk>, options: &PoolOptions) -> Result<Arc<Pool>> {
    let data_key = key_of(disk);
    let options = &PoolOptions { data_key, ..options.clone() };
    Pool::open(disk.clone() as Arc<dyn Disk>, options, Arc::new(Nodes), Arc::new(SystemClock))
}

/// Numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Content that does not compress.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(len).collect()
    }
}

/// The content of block `number`: half compressible, never zeros; of every 16th a page that is not.
pub fn content(number: u64) -> Vec<u8> {
    if number % 16 == 11 {
        return Random(number << 32).bytes(8192);
    }
    let mut bytes = Random(number).bytes(1024);
    bytes.extend_from_slice(&[number as u8; 1024]);
    bytes[0] |= 1;
    bytes
}

/// Writes a tree of `numbers`' blocks under one node.
pub fn write_tree(transaction: &Transaction, salt: u32, numbers: &[u64]) -> Result<BlockHash> {
    let children: Result<Vec<BlockHash>> =
        numbers.iter().map(|number| transaction.write_data(&content(*number))).collect();
    transaction.write_node(&node(salt, &children?))
}

/// Replaces the pool's root.
pub fn commit_tree(pool: &Arc<Pool>, salt: u32, numbers: &[u64]) -> Result<BlockHash> {
    let transaction = pool.begin();
    let root = write_tree(&transaction, salt, numbers)?;
    pool.commit(transaction, root, &salt.to_le_bytes())?;
    Ok(root)
}

/// Reads everything below a node; the data blocks' contents, in order.
pub fn read_tree(pool: &Pool, root: &BlockHash) -> Result<Vec<Vec<u8>>> {
    let bytes = pool.read(root, 0)?;
    let mut contents = Vec::new();
    for child in Nodes.children(&bytes)? {
        let block = pool.read(&child, 0)?;
        if block.first() == Some(&b'N') && block.len() % 32 == 8 {
            contents.extend(read_tree(pool, &child)?);
        } else {
            contents.push(block.to_vec());
        }
    }
    Ok(contents)
}

/// Does background work until none is left.
pub fn reclaim(pool: &Pool) {
    for _ in 0..10_000 {
        if !pool.reclaim_step().unwrap() {
            return;
        }
    }
    panic!("reclaiming does not end");
}

/// The counts add up.
pub fn assert_sound(pool: &Pool, context: &str) {
    let problems = pool.check().unwrap();
    assert!(problems.is_empty(), "{context}: {problems:#?}");
}

/// Seeds to try: a few, or OFFSHOOT_SEEDS.
pub fn seeds(few: u64) -> std::ops::Range<u64> {
    let count = std::env::var("OFFSHOOT_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    0..count.unwrap_or(few)
}

/// Scrubs all of it at once.
pub fn scrub(pool: &Pool) -> ScrubState {
    let tell = &mut |_: &ScrubState| ControlFlow::Continue(());
    pool.scrub(ScrubState::default(), u64::MAX, tell).unwrap()
}

/// A page of the size of the device's, started again by each number.
pub fn page(number: u64) -> Vec<u8> {
    Random(number << 32).bytes(PAGE_LEN as usize)
}

/// Replaces the root with a tree of these pages, and of a compressible block for each.
pub fn commit_pages(
    pool: &Arc<Pool>,
    salt: u32,
    numbers: impl Iterator<Item = u64>,
) -> Result<BlockHash> {
    let transaction = pool.begin();
    let mut children = Vec::new();
    for number in numbers {
        children.push(transaction.write_data(&page(number))?);
        children.push(transaction.write_data(&content(number))?);
    }
    let root = transaction.write_node(&node(salt, &children))?;
    pool.commit(transaction, root, b"")?;
    Ok(root)
}

/// The contents of the segments of pages, by their paths.
pub fn page_segments(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let paths = disk.list("segments").unwrap().into_iter().map(|name| format!("segments/{name}"));
    let contents = paths.map(|path| (path.clone(), disk.content(&path).unwrap()));
    let of_pages = |bytes: &[u8]| {
        decode_segment_header(bytes).is_ok_and(|(_, _, layout)| layout == Layout::Pages)
    };
    contents.filter(|(_, bytes)| of_pages(bytes)).collect()
}

pub fn assert_reads(pool: &Pool, root: &BlockHash, numbers: impl Iterator<Item = u64>) {
    pool.clear_cache();
    let expected: Vec<_> = numbers.flat_map(|number| [page(number), content(number)]).collect();
    assert!(read_tree(pool, root).unwrap() == expected);
}

/// The offline check of a pool that nobody has open.
pub fn assert_check_finds_nothing(disk: &Arc<SimDisk>) {
    let mut check =
        PoolCheck::open(disk.clone() as Arc<dyn Disk>, Arc::new(Nodes), key_of(disk).as_ref())
            .unwrap();
    check.verify_segments(&mut |_, _| {});
    check.count_references();
    let findings = check.into_findings();
    assert!(findings.is_empty(), "{findings:?}");
}
