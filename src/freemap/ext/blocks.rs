//! Blocks through one buffer: once two follow each other, the next ones are read along.

use crate::freemap::{ReadAt, ReadError, Refusal};

/// How much is read ahead; a multiple of every block size.
const CHUNK_BYTES: u64 = 64 << 10;

/// Reads blocks of a volume.
pub struct Blocks<'a> {
    volume: &'a dyn ReadAt,
    block_bytes: u64,
    end_bytes: u64,
    chunk_start_bytes: u64,
    chunk: Vec<u8>,
}

impl<'a> Blocks<'a> {
    /// For so many blocks of that size, which is a power of two up to 64 KiB.
    pub fn new(volume: &'a dyn ReadAt, block_bytes: u64, blocks: u64) -> Self {
        Self {
            volume,
            block_bytes,
            end_bytes: block_bytes.saturating_mul(blocks),
            chunk_start_bytes: 0,
            chunk: Vec::new(),
        }
    }

    /// The bytes of one block.
    pub fn read(&mut self, block: u64) -> Result<&[u8], Refusal> {
        let start = block.saturating_mul(self.block_bytes);
        let past_end = ReadError::past_end(start, 0, self.end_bytes);
        if start
            .checked_add(self.block_bytes)
            .is_none_or(|end| end > self.end_bytes)
        {
            return Err(past_end.into());
        }
        let chunk_end = self.chunk_start_bytes + self.chunk.len() as u64;
        if start < self.chunk_start_bytes || start + self.block_bytes > chunk_end {
            let follows = start == chunk_end && !self.chunk.is_empty();
            let wanted_bytes = if follows { CHUNK_BYTES } else { self.block_bytes };
            let len_bytes = (self.end_bytes - start).min(wanted_bytes);
            self.chunk
                .resize(usize::try_from(len_bytes).unwrap_or_default(), 0);
            self.chunk_start_bytes = start;
            if let Err(error) = self.volume.read_at(start, &mut self.chunk) {
                self.chunk.clear();
                return Err(error.into());
            }
        }
        let from = usize::try_from(start - self.chunk_start_bytes).unwrap_or(usize::MAX);
        let len = usize::try_from(self.block_bytes).unwrap_or(usize::MAX);
        self.chunk
            .get(from..from.saturating_add(len))
            .ok_or_else(|| past_end.into())
    }

    /// A copy of one block, in a buffer that is kept.
    pub fn read_into(&mut self, block: u64, buffer: &mut Vec<u8>) -> Result<(), Refusal> {
        let bytes = self.read(block)?;
        buffer.clear();
        buffer.extend_from_slice(bytes);
        Ok(())
    }
}
