//! Where the bytes of a medium are: in memory, in a file, made up again from a formula, or nowhere.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};

use crate::sim::own_file;
use crate::sim::rng::Rng;

/// Bytes kept in one piece; a multiple of every sector size in use.
pub const CHUNK_BYTES: u64 = 1 << 16;

/// Zeros are written to a file in pieces of this size where it cannot have holes.
const ZEROS_LEN: usize = 1 << 20;

/// Where the bytes are.
#[derive(Debug)]
pub enum Store {
    /// In memory; pieces that are all zeros are not there.
    Memory(BTreeMap<u64, Box<[u8]>>),
    /// In a sparse file, locked.
    File(Flock<File>),
    /// Only that something was written is remembered.
    Virtual(Written),
    /// Not even that: everything reads as zeros.
    Nothing,
}

impl Store {
    /// Empty, in memory.
    pub fn memory() -> Self {
        Self::Memory(BTreeMap::new())
    }

    /// The file at `path`, made if it is not there. One that holds something must have the right size already. Nobody else may
    /// have it as a medium at the same time.
    pub fn file(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = own_file::open(File::options().read(true).write(true), path)?;
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|(_, why)| match why {
            Errno::EWOULDBLOCK => io::Error::other("another simulated drive has it"),
            why => why.into(),
        })?;
        let present = file.metadata()?.len();
        if present == 0 {
            file.set_len(bytes)?;
        } else if present != bytes {
            return Err(io::Error::other(format!("it has {present} bytes, not {bytes}")));
        }
        Ok(Self::File(file))
    }

    /// Fills `out`, which is zeroed, from byte `start` on.
    pub fn read(&self, start: u64, sector_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Memory(chunks) => {
                let mut rest = out;
                for (key, within, len) in pieces(start, rest.len()) {
                    let (place, tail) = std::mem::take(&mut rest).split_at_mut(len);
                    rest = tail;
                    let held = chunks.get(&key);
                    if let Some(source) = held.and_then(|c| c.get(within..within + len)) {
                        place.copy_from_slice(source);
                    }
                }
            }
            Self::File(file) => file.read_exact_at(out, start)?,
            Self::Virtual(written) => written.read(start / sector_bytes, sector_bytes, out),
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Puts whole sectors at byte `start`.
    pub fn write(&mut self, start: u64, sector_bytes: u64, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Memory(chunks) => overwrite(chunks, start, data),
            Self::File(file) => file.write_all_at(data, start)?,
            Self::Virtual(written) => {
                let first = start / sector_bytes;
                written.write(first, first + data.len() as u64 / sector_bytes);
            }
            Self::Nothing => {}
        }
        Ok(())
    }

    /// Makes a range of bytes read as zeros, and gives its room back.
    pub fn erase(&mut self, start: u64, end: u64, sector_bytes: u64) -> io::Result<()> {
        match self {
            Self::Memory(chunks) => erase(chunks, start, end),
            Self::File(file) => punch(file, start, end)?,
            Self::Virtual(written) => written.discard(start / sector_bytes, end / sector_bytes),
            Self::Nothing => {}
        }
        Ok(())
    }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes
        .chunks(256)
        .all(|part| part.iter().fold(0, |all, b| all | b) == 0)
}

fn overwrite(chunks: &mut BTreeMap<u64, Box<[u8]>>, start: u64, data: &[u8]) {
    let mut rest = data;
    for (key, within, len) in pieces(start, data.len()) {
        let (piece, tail) = rest.split_at(len);
        rest = tail;
        let whole = len as u64 == CHUNK_BYTES;
        if is_blank(piece) {
            if whole {
                chunks.remove(&key);
            } else if let Some(chunk) = chunks.get_mut(&key) {
                if let Some(place) = chunk.get_mut(within..within + len) {
                    place.fill(0);
                }
                if is_blank(chunk) {
                    chunks.remove(&key);
                }
            }
            continue;
        }
        let chunk = chunks.entry(key).or_insert_with(|| {
            if whole {
                piece.into()
            } else {
                vec![0; CHUNK_BYTES as usize].into_boxed_slice()
            }
        });
        if let Some(place) = chunk.get_mut(within..within + len) {
            place.copy_from_slice(piece);
        }
    }
}

fn erase(chunks: &mut BTreeMap<u64, Box<[u8]>>, start: u64, end: u64) {
    let keys: Vec<u64> = chunks
        .range(start.saturating_sub(CHUNK_BYTES - 1)..end)
        .map(|(key, _)| *key)
        .collect();
    for key in keys {
        let (from, to) = (start.max(key), end.min(key + CHUNK_BYTES));
        let place = |at: u64| usize::try_from(at.saturating_sub(key)).unwrap_or_default();
        let Some(chunk) = chunks.get_mut(&key) else {
            continue;
        };
        if let Some(part) = chunk.get_mut(place(from)..place(to)) {
            part.fill(0);
        }
        if to - from == CHUNK_BYTES || is_blank(chunk) {
            chunks.remove(&key);
        }
    }
}

fn punch(file: &File, start: u64, end: u64) -> io::Result<()> {
    let holes = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let (Ok(offset), Ok(len)) = (i64::try_from(start), i64::try_from(end.saturating_sub(start))) else {
        return Err(io::Error::other("beyond what a file can hold"));
    };
    if len == 0 || fallocate(file, holes, offset, len).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; ZEROS_LEN];
    let mut at = start;
    while at < end {
        let len = usize::try_from(end - at).unwrap_or(ZEROS_LEN).min(ZEROS_LEN);
        file.write_all_at(zeros.get(..len).unwrap_or_default(), at)?;
        at += len as u64;
    }
    Ok(())
}

/// Cuts a byte range at chunk borders: (start of the chunk, offset in it, length).
fn pieces(start: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = start;
    let end = start.saturating_add(len as u64);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let within = at % CHUNK_BYTES;
        let len = (CHUNK_BYTES - within).min(end - at);
        let piece = (at - within, within as usize, len as usize);
        at += len;
        Some(piece)
    })
}

/// What was written without being held: extents, each with the number of the pass that wrote it last.
///
/// A pass ends where something of it is overwritten or discarded. So each write over old data reads differently from what was
/// there, and yet a disk that is written from end to end stays one extent.
#[derive(Debug)]
pub struct Written {
    seed: u64,
    pass: u64,
    /// What the writer calls what it writes, in place of a number of ours.
    named: Option<u64>,
    extents: BTreeMap<u64, (u64, u64)>,
}

impl Written {
    /// Nothing written yet.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            pass: 1,
            named: None,
            extents: BTreeMap::new(),
        }
    }

    /// Takes `first..end` out; whether some of it was of the present pass.
    fn carve(&mut self, first: u64, end: u64) -> bool {
        let touching: Vec<(u64, u64, u64)> = self
            .extents
            .range(..end)
            .rev()
            .take_while(|(_, (stop, _))| *stop > first)
            .map(|(start, (stop, pass))| (*start, *stop, *pass))
            .collect();
        let mut current = false;
        for (start, stop, pass) in touching {
            current |= pass == self.pass;
            self.extents.remove(&start);
            if start < first {
                self.extents.insert(start, (first, pass));
            }
            if stop > end {
                self.extents.insert(end, (stop, pass));
            }
        }
        current
    }

    fn write(&mut self, first: u64, end: u64) {
        if end <= first {
            return;
        }
        if self.carve(first, end) && self.named.is_none() {
            self.pass += 1;
        }
        let now = self.named.unwrap_or(self.pass);
        let (mut from, mut to) = (first, end);
        if let Some((start, (stop, pass))) = self.extents.range(..first).next_back()
            && *stop == first
            && *pass == now
        {
            from = *start;
        }
        if let Some((stop, pass)) = self.extents.get(&end)
            && *pass == now
        {
            to = *stop;
            self.extents.remove(&end);
        }
        self.extents.insert(from, (to, now));
    }

    /// From now on what is written has this name; without one it has the number of its pass.
    pub fn name(&mut self, name: Option<u64>) {
        self.named = name;
    }

    /// How many sectors of `first..end` do not hold what was written under a name.
    pub fn unlike(&self, first: u64, end: u64, name: u64) -> u64 {
        let alike: u64 = self
            .extents
            .range(..end)
            .rev()
            .take_while(|(_, (stop, _))| *stop > first)
            .filter(|(_, (_, pass))| *pass == name)
            .map(|(start, (stop, _))| (*stop).min(end) - (*start).max(first))
            .sum();
        end.saturating_sub(first).saturating_sub(alike)
    }

    fn discard(&mut self, first: u64, end: u64) {
        if self.carve(first, end) {
            self.pass += 1;
        }
    }

    fn read(&self, first: u64, sector_bytes: u64, out: &mut [u8]) {
        let sector_len = usize::try_from(sector_bytes).unwrap_or(512);
        let end = first + out.len() as u64 / sector_bytes;
        let touching = self
            .extents
            .range(..end)
            .rev()
            .take_while(|(_, (stop, _))| *stop > first);
        for (start, (stop, pass)) in touching {
            let (from, to) = ((*start).max(first), (*stop).min(end));
            let skip = usize::try_from((from - first) * sector_bytes).unwrap_or_default();
            let sectors = out.get_mut(skip..).unwrap_or_default();
            for (lba, sector) in (from..to).zip(sectors.chunks_exact_mut(sector_len)) {
                made_up(self.seed, lba, *pass, sector);
            }
        }
    }

    #[cfg(test)]
    pub fn extents(&self) -> usize {
        self.extents.len()
    }
}

/// Bytes that no compressor makes smaller, the same for the same seed, sector and pass.
pub fn made_up(seed: u64, lba: u64, pass: u64, sector: &mut [u8]) {
    let place = Rng::from_seed(lba ^ pass.rotate_left(40)).next_u64();
    let mut rng = Rng::from_seed(seed ^ place);
    for eight in sector.chunks_mut(8) {
        for (byte, made) in eight.iter_mut().zip(rng.next_u64().to_le_bytes()) {
            *byte = made;
        }
    }
}
