//! Which operation comes next.

use crate::Dice;
use crate::model::{Model, Op};
use offshoot_dataset::{AllocateMode, NewKind, RenameMode};

/// A random operation on what a model holds, sometimes on what it does not.
#[expect(clippy::too_many_lines, reason = "one arm for each kind of operation")]
pub fn choose_op(dice: &mut Dice, model: &Model) -> Op {
    let pick = |dice: &mut Dice, wanted: &dyn Fn(u64) -> bool| {
        let all: Vec<u64> = model.nodes.keys().copied().filter(|ino| wanted(*ino)).collect();
        // Sometimes one that does not exist.
        let sides = all.len() as u64 + u64::from(dice.chance(20));
        let index = dice.roll(sides) as usize;
        all.get(index).copied().unwrap_or(999_999)
    };
    let dir = |dice: &mut Dice| pick(dice, &|ino| model.is_dir(ino));
    let file = |dice: &mut Dice| pick(dice, &|ino| model.is_file(ino));
    let any = |dice: &mut Dice| pick(dice, &|_| true);
    let name = |dice: &mut Dice| format!("n{}", dice.roll(12)).into_bytes();
    let offset = |dice: &mut Dice| match dice.roll(3) {
        0 => dice.roll(12) * 8192,
        1 => dice.roll(100_000),
        _ => dice.roll(2) * 8192 * 150 + dice.roll(3) * 4096,
    };
    let len = |dice: &mut Dice| match dice.roll(4) {
        0 => 1 + dice.roll(100),
        1 => 8192,
        2 => 8192 * (1 + dice.roll(4)),
        _ => 1 + dice.roll(30_000),
    };
    match dice.roll(40) {
        0..=6 => {
            let kind = match dice.roll(8) {
                0..=1 => NewKind::Directory,
                2 => NewKind::Symlink(b"there".to_vec()),
                3 => NewKind::Fifo,
                _ => NewKind::File,
            };
            Op::Create { parent: dir(dice), name: name(dice), kind }
        }
        7..=17 => {
            let (len, offset) = (len(dice), offset(dice));
            let data =
                if dice.chance(8) { vec![0; len as usize] } else { dice.bytes(len as usize) };
            Op::Write { ino: file(dice), offset, data }
        }
        18 => {
            let len = len(dice) as usize;
            Op::Append { ino: file(dice), data: dice.bytes(len) }
        }
        19..=20 => Op::Resize { ino: file(dice), size: offset(dice) },
        21..=22 => {
            use AllocateMode::*;
            let modes = [Extend, KeepSize, PunchHole, ZeroRange, ZeroRangeKeepSize];
            let mode = modes[dice.roll(5) as usize];
            Op::Allocate { ino: file(dice), offset: offset(dice), len: len(dice), mode }
        }
        23..=24 => Op::Link { ino: any(dice), parent: dir(dice), name: name(dice) },
        25..=27 => Op::Unlink { parent: dir(dice), name: name(dice) },
        28 => Op::Rmdir { parent: dir(dice), name: name(dice) },
        29..=32 => {
            let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
            let mode = modes[dice.roll(4).saturating_sub(1) as usize];
            let (parent, new_parent) = (dir(dice), dir(dice));
            Op::Rename { parent, name: name(dice), new_parent, new_name: name(dice), mode }
        }
        33 => Op::SetMode {
            ino: any(dice),
            mode: dice.roll(0o10000) as u32,
            mtime_s: dice.roll(1 << 33),
        },
        34 => {
            let len = [10, 600, 9000][dice.roll(3) as usize];
            let name = format!("user.{}", dice.roll(3)).into_bytes();
            Op::SetXattr { ino: any(dice), name, value: dice.bytes(len) }
        }
        35 => {
            let name = format!("user.{}", dice.roll(3)).into_bytes();
            Op::RemoveXattr { ino: any(dice), name }
        }
        36..=37 => {
            let (from, to) = (file(dice), file(dice));
            let (offset, mut to_offset) = (dice.roll(6) * 8192, dice.roll(6) * 8192);
            let mut len = len(dice) * 2;
            let left = model.size(from).saturating_sub(offset);
            if dice.chance(2) && left >= 8192 {
                // Whole blocks are shared in one operation; with a rest it would be two.
                len = len.min(left).next_multiple_of(8192).min(left / 8192 * 8192);
            } else {
                to_offset += 1 + dice.roll(8000);
            }
            Op::Copy { from, offset, to, to_offset, len }
        }
        38 => Op::Open { ino: any(dice) },
        _ => {
            let open: Vec<u64> = model.open.keys().copied().collect();
            match open.get(dice.roll(open.len() as u64) as usize) {
                Some(ino) => Op::Close { ino: *ino },
                None => Op::Open { ino: any(dice) },
            }
        }
    }
}
