//! What a drive holds: sectors that were never written are zeros and cost nothing.

use std::collections::BTreeMap;

/// Bytes kept in one piece; a multiple of every sector size in use.
const CHUNK_BYTES: u64 = 4096;

/// A sparse store of sectors.
#[derive(Debug)]
pub struct Media {
    sector_bytes: u64,
    sectors: u64,
    chunks: BTreeMap<u64, Box<[u8]>>,
    /// Sectors that were trimmed and not written since, as start → end.
    trimmed: BTreeMap<u64, u64>,
    trimmed_fill: Option<u8>,
    keep: bool,
}

impl Media {
    /// An empty medium. `trimmed_fill` is what trimmed sectors read as; `None` leaves what was there.
    pub fn new(sectors: u64, sector_bytes: u32, trimmed_fill: Option<u8>, keep: bool) -> Self {
        Self {
            sector_bytes: u64::from(sector_bytes.max(1)),
            sectors,
            chunks: BTreeMap::new(),
            trimmed: BTreeMap::new(),
            trimmed_fill,
            keep,
        }
    }

    /// Number of sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Bytes per sector.
    pub fn sector_bytes(&self) -> u64 {
        self.sector_bytes
    }

    /// Whether `first..first + count` lies inside.
    pub fn holds(&self, first: u64, count: u64) -> bool {
        first.checked_add(count).is_some_and(|end| end <= self.sectors)
    }

    /// Sectors that are trimmed at present.
    pub fn trimmed_sectors(&self) -> u64 {
        self.trimmed
            .iter()
            .map(|(start, end)| end.saturating_sub(*start))
            .sum()
    }

    /// Reads whole sectors.
    pub fn read(&self, first: u64, count: u64) -> Vec<u8> {
        let start = first.saturating_mul(self.sector_bytes);
        let len = count.saturating_mul(self.sector_bytes);
        let mut out = vec![0; usize::try_from(len).unwrap_or_default()];
        for (chunk_start, within, place) in pieces(start, &mut out) {
            if let Some(source) = self
                .chunks
                .get(&chunk_start)
                .and_then(|c| c.get(within..within.saturating_add(place.len())))
            {
                place.copy_from_slice(source);
            }
        }
        if let Some(fill) = self.trimmed_fill.filter(|f| *f != 0) {
            for (from, to) in self.trimmed_within(first, first.saturating_add(count)) {
                let begin = (from - first).saturating_mul(self.sector_bytes);
                let end = (to - first).saturating_mul(self.sector_bytes);
                if let Some(place) = usize::try_from(begin)
                    .ok()
                    .zip(usize::try_from(end).ok())
                    .and_then(|(b, e)| out.get_mut(b..e))
                {
                    place.fill(fill);
                }
            }
        }
        out
    }

    /// Writes whole sectors.
    pub fn write(&mut self, first: u64, data: &[u8]) {
        let count = (data.len() as u64) / self.sector_bytes;
        self.untrim(first, first.saturating_add(count));
        if self.keep {
            self.overwrite(first.saturating_mul(self.sector_bytes), data);
        }
    }

    fn overwrite(&mut self, start: u64, data: &[u8]) {
        let mut copy = data.to_vec();
        for (chunk_start, within, piece) in pieces(start, &mut copy) {
            let blank = piece.iter().all(|b| *b == 0);
            if blank && !self.chunks.contains_key(&chunk_start) {
                continue;
            }
            let chunk = self
                .chunks
                .entry(chunk_start)
                .or_insert_with(|| vec![0; CHUNK_BYTES as usize].into_boxed_slice());
            if let Some(place) = chunk.get_mut(within..within.saturating_add(piece.len())) {
                place.copy_from_slice(piece);
            }
            if blank && chunk.iter().all(|b| *b == 0) {
                self.chunks.remove(&chunk_start);
            }
        }
    }

    /// Discards sectors.
    pub fn trim(&mut self, first: u64, count: u64) {
        let end = first.saturating_add(count).min(self.sectors);
        if end <= first {
            return;
        }
        if self.trimmed_fill.is_some() {
            self.erase(
                first.saturating_mul(self.sector_bytes),
                end.saturating_mul(self.sector_bytes),
            );
        }
        let (mut from, mut to) = (first, end);
        let touching: Vec<(u64, u64)> = self
            .trimmed
            .range(..=end)
            .rev()
            .take_while(|(_, e)| **e >= first)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (start, stop) in touching {
            self.trimmed.remove(&start);
            from = from.min(start);
            to = to.max(stop);
        }
        self.trimmed.insert(from, to);
    }

    fn erase(&mut self, start: u64, end: u64) {
        let keys: Vec<u64> = self
            .chunks
            .range(start.saturating_sub(CHUNK_BYTES - 1)..end)
            .map(|(k, _)| *k)
            .collect();
        for key in keys {
            let stop = key.saturating_add(CHUNK_BYTES);
            if start <= key && stop <= end {
                self.chunks.remove(&key);
            } else {
                let (from, to) = (start.max(key), end.min(stop));
                let zeros = vec![0; usize::try_from(to.saturating_sub(from)).unwrap_or_default()];
                self.overwrite(from, &zeros);
            }
        }
    }

    fn trimmed_within(&self, first: u64, end: u64) -> Vec<(u64, u64)> {
        self.trimmed
            .range(..end)
            .rev()
            .take_while(|(_, stop)| **stop > first)
            .map(|(start, stop)| ((*start).max(first), (*stop).min(end)))
            .collect()
    }

    fn untrim(&mut self, first: u64, end: u64) {
        let touching: Vec<(u64, u64)> = self
            .trimmed
            .range(..end)
            .rev()
            .take_while(|(_, stop)| **stop > first)
            .map(|(s, e)| (*s, *e))
            .collect();
        for (start, stop) in touching {
            self.trimmed.remove(&start);
            if start < first {
                self.trimmed.insert(start, first);
            }
            if stop > end {
                self.trimmed.insert(end, stop);
            }
        }
    }
}

/// Cuts a byte range at chunk borders: (start of the chunk, offset in it, the bytes).
fn pieces(start: u64, buffer: &mut [u8]) -> Vec<(u64, usize, &mut [u8])> {
    let mut out = Vec::new();
    let mut at = start;
    let mut rest = buffer;
    while !rest.is_empty() {
        let within = at % CHUNK_BYTES;
        let len = usize::try_from(CHUNK_BYTES - within).unwrap_or(1).min(rest.len());
        let (piece, tail) = std::mem::take(&mut rest).split_at_mut(len);
        out.push((at - within, usize::try_from(within).unwrap_or_default(), piece));
        at = at.saturating_add(len as u64);
        rest = tail;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_keep_what_was_written_and_nothing_else() {
        let mut media = Media::new(1 << 30, 512, Some(0), true);
        assert_eq!(media.read(5, 2), vec![0; 1024]);
        let data: Vec<u8> = (0..512 * 20).map(|i| (i % 251) as u8 + 1).collect();
        media.write(3, &data);
        assert_eq!(media.read(3, 20), data);
        assert_eq!(media.read(2, 1), vec![0; 512]);
        assert_eq!(media.read(23, 1), vec![0; 512]);
        media.write(3, &vec![0; 512 * 20]);
        assert!(media.chunks.is_empty(), "zeros cost nothing");
    }

    #[test]
    fn trimming_discards_exactly_the_range() {
        for fill in [0u8, 0xff] {
            let mut media = Media::new(1 << 20, 512, Some(fill), true);
            media.write(0, &vec![7; 512 * 64]);
            media.trim(10, 30);
            assert_eq!(media.read(9, 1), vec![7; 512]);
            assert_eq!(media.read(10, 30), vec![fill; 512 * 30]);
            assert_eq!(media.read(40, 1), vec![7; 512]);
            media.write(20, &[9; 512]);
            assert_eq!(media.read(20, 1), vec![9; 512]);
            assert_eq!(media.read(21, 1), vec![fill; 512]);
            assert_eq!(media.trimmed_sectors(), 29);
            media.trim(15, 10);
            assert_eq!(media.trimmed_sectors(), 30, "overlaps are merged");
        }
        let mut media = Media::new(1 << 20, 512, None, true);
        media.write(0, &[7; 512]);
        media.trim(0, 1);
        assert_eq!(
            media.read(0, 1),
            vec![7; 512],
            "not deterministic: the old data may stay"
        );
    }
}
