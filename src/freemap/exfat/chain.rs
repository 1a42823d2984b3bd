//! The file allocation table (exFAT specification, chapter 4). It counts only for what is in no single piece.

use super::boot::Layout;
use super::contradiction;
use crate::freemap::{ReadAt, Refusal, UsedMap};
use crate::wire::le32;

const CHUNK_BYTES: u64 = 1 << 18;
const BLOCK_BYTES: u64 = 1 << 15;
const BLOCKS: u64 = 8;
const BAD: u32 = 0xffff_fff7;
const END: u32 = 0xffff_ffff;
/// The first two entries: the kind of medium, and a constant.
const HEAD: [u8; 8] = [0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];

pub(super) struct Table<'a> {
    volume: &'a dyn ReadAt,
    layout: &'a Layout,
    blocks: Vec<Option<(u64, Vec<u8>)>>,
}

impl<'a> Table<'a> {
    pub(super) fn new(volume: &'a dyn ReadAt, layout: &'a Layout) -> Self {
        Self {
            volume,
            layout,
            blocks: (0..BLOCKS).map(|_| None).collect(),
        }
    }

    fn len_bytes(&self) -> u64 {
        (self.layout.clusters + 2) * 4
    }

    fn entry_bytes(&self, cluster: u32) -> u64 {
        self.layout.table_bytes + u64::from(cluster) * 4
    }

    /// What follows a cluster of the volume in its chain; `None` at the end of it.
    pub(super) fn next(&mut self, cluster: u32) -> Result<Option<u32>, Refusal> {
        let offset_bytes = u64::from(cluster) * 4;
        let number = offset_bytes / BLOCK_BYTES;
        let len_bytes = self
            .len_bytes()
            .saturating_sub(number * BLOCK_BYTES)
            .min(BLOCK_BYTES);
        let within = (offset_bytes % BLOCK_BYTES) as usize;
        let slot = usize::try_from(number % BLOCKS)
            .ok()
            .and_then(|i| self.blocks.get_mut(i));
        let entry = match slot {
            Some(Some((have, bytes))) if *have == number => le32(bytes, within),
            Some(slot) => {
                let mut bytes = slot.take().map(|(_, bytes)| bytes).unwrap_or_default();
                bytes.resize(len_bytes as usize, 0);
                self.volume
                    .read_at(self.layout.table_bytes + number * BLOCK_BYTES, &mut bytes)?;
                let entry = le32(&bytes, within);
                *slot = Some((number, bytes));
                entry
            }
            None => None,
        };
        match entry {
            Some(END) => Ok(None),
            Some(next) if self.layout.index(next).is_some() => Ok(Some(next)),
            other => Err(contradiction(
                format!(
                    "cluster {cluster} of a chain is followed by {:x}h",
                    other.unwrap_or_default()
                ),
                self.entry_bytes(cluster),
            )),
        }
    }

    /// Reads all entries: the first two are constants, and bad clusters are never free.
    pub(super) fn scan(&self, used: &mut UsedMap) -> Result<(), Refusal> {
        let mut buffer = Vec::new();
        let mut done = 0;
        while done < self.len_bytes() {
            let now = (self.len_bytes() - done).min(CHUNK_BYTES);
            buffer.resize(now as usize, 0);
            self.volume.read_at(self.layout.table_bytes + done, &mut buffer)?;
            if done == 0 && buffer.get(..HEAD.len()) != Some(&HEAD) {
                return Err(contradiction(
                    "the table does not start as it must",
                    self.layout.table_bytes,
                ));
            }
            for (i, entry) in buffer.chunks_exact(4).enumerate() {
                if entry == BAD.to_le_bytes()
                    && let Some(index) = (done / 4 + i as u64).checked_sub(2)
                {
                    used.use_units(index, 1);
                }
            }
            done += now;
        }
        Ok(())
    }
}
