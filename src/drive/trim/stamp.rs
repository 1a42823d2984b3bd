//! Blocks that can be told from all others, and what became of them.

use serde::Serialize;

/// What a stamped range reads as after it was trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reads {
    /// All zeroes.
    Zeroed,
    /// As it was written.
    Unchanged,
    /// Partly as it was written.
    Partly,
    /// Something else.
    Other,
}

const WORD_BYTES: usize = 8;

/// The stamp of one block: its address, a number of this run, and bytes that follow from both.
fn block(lba: u64, nonce: u64, out: &mut Vec<u8>, block_bytes: u32) {
    let mut state = lba
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(nonce)
        .wrapping_mul(0xd134_2543_de82_ef95)
        | 1;
    let words = block_bytes as usize / WORD_BYTES;
    for i in 0..words {
        let word = match i {
            0 => u64::from_le_bytes(*b"drvthru!"),
            1 => lba,
            2 => nonce,
            _ => {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state
            }
        };
        out.extend(word.to_le_bytes());
    }
}

/// Stamps for `blocks` blocks from `first` on.
pub fn stamp(first: u64, blocks: u64, nonce: u64, block_bytes: u32) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..blocks {
        block(first.saturating_add(i), nonce, &mut out, block_bytes);
    }
    out
}

/// What `data` is, where `stamped` was written.
pub fn reads(data: &[u8], stamped: &[u8], block_bytes: u32) -> Reads {
    let size = (block_bytes as usize).max(1);
    let same = data
        .chunks(size)
        .zip(stamped.chunks(size))
        .filter(|(now, then)| now == then)
        .count();
    let blocks = stamped.len() / size;
    if data.len() != stamped.len() {
        Reads::Other
    } else if data.iter().all(|b| *b == 0) {
        Reads::Zeroed
    } else if same == blocks {
        Reads::Unchanged
    } else if same > 0 {
        Reads::Partly
    } else {
        Reads::Other
    }
}

/// The address in the stamp of a block, if it is a stamp of this run: a bridge that moves blocks is told by how far.
pub fn address_in(data: &[u8], nonce: u64) -> Option<u64> {
    let word = |i: usize| {
        data.get(i * WORD_BYTES..)
            .and_then(<[u8]>::first_chunk::<WORD_BYTES>)
            .map(|w| u64::from_le_bytes(*w))
    };
    (word(0) == Some(u64::from_le_bytes(*b"drvthru!")) && word(2) == Some(nonce)).then(|| word(1))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_knows_its_place() {
        let stamped = stamp(100, 4, 7, 512);
        assert_eq!(stamped.len(), 2048);
        assert_eq!(address_in(&stamped[512..], 7), Some(101));
        assert_eq!(address_in(&stamped[512..], 8), None);
        assert_ne!(stamped[..512], stamped[512..1024]);
        assert_eq!(reads(&stamped, &stamped, 512), Reads::Unchanged);
        assert_eq!(reads(&[0; 2048], &stamped, 512), Reads::Zeroed);
        assert_eq!(reads(&[0xff; 2048], &stamped, 512), Reads::Other);
        let mut half = stamped.clone();
        half[..1024].fill(0);
        assert_eq!(reads(&half, &stamped, 512), Reads::Partly);
        assert_eq!(reads(&half[..1024], &stamped, 512), Reads::Other);
    }
}
