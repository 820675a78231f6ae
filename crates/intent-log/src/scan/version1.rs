//! Logs of the first version, whose records do not reveal damage: the first bad one ends them.

use crate::Result;
use crate::files::read_file;
use crate::replay::{Record, Scan};
use offshoot_format::log::version1::RecordHeader;
use offshoot_format::log::{LOG_HEADER_LEN, LogFileHeader};

pub(super) fn read_chain(
    scan: &mut Scan,
    start: (usize, LogFileHeader),
    trimmed: u64,
) -> Result<()> {
    let (mut current, header) = start;
    let (mut expected, mut generation) = (header.first_sequence, header.generation);
    loop {
        scan.last_file = current;
        let bytes = read_file(&*scan.files[current].handle, scan.file_size)?;
        let begun = expected;
        let mut offset = LOG_HEADER_LEN as usize;
        while let Some((header, payload)) =
            bytes.get(offset..).and_then(|rest| RecordHeader::decode(rest).ok())
        {
            if header.sequence != expected || header.generation < generation {
                break;
            }
            if expected >= trimmed {
                let payload = payload.to_vec();
                scan.replay.records.push(Record { sequence: expected, payload });
            }
            generation = header.generation;
            expected += 1;
            offset += RecordHeader::stored_len(payload.len());
        }
        scan.next_sequence = scan.next_sequence.max(expected);
        let follows = |(number, header): &(usize, LogFileHeader)| {
            *number != current
                && header.first_sequence == expected
                && header.generation >= generation
        };
        let next = scan.headers().filter(follows).max_by_key(|(_, header)| header.generation);
        match next {
            Some((number, header)) if begun < expected => {
                (current, generation) = (number, header.generation);
            }
            _ => return Ok(()),
        }
    }
}
