//! What a drive holds: sectors that were never written are zeros and cost nothing.

mod ranges;
mod store;

pub use self::ranges::Ranges;
pub use self::store::{Store, Written};

/// What trimmed sectors read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trimmed {
    Zeros,
    Ones,
    /// What was there: not deterministic.
    Old,
}

/// How far TRIM reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// What was named.
    Exact,
    /// Nothing, though it is answered with success.
    Nothing,
    /// One sector behind the range as well.
    Neighbour,
    /// All units of so many sectors that the range touches.
    Widened(u64),
}

/// What goes wrong with writes that are answered with success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFault {
    /// Only the first half of the sectors is stored.
    Torn,
    /// Nothing is stored.
    Lost,
}

/// Why a medium could not do what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediumError {
    /// This sector cannot be read.
    Unreadable(u64),
    /// The file that holds the bytes failed.
    Host,
}

/// What a medium is made of.
#[derive(Debug)]
pub struct Setup {
    pub sectors: u64,
    pub sector_bytes: u32,
    pub store: Store,
    pub trimmed: Trimmed,
    pub reach: Reach,
    /// Unreadable sectors, as (first, count).
    pub bad: Vec<(u64, u64)>,
    /// Starts the bytes that [`Media::hold_nothing`] makes up.
    pub seed: u64,
}

/// A sparse store of sectors.
#[derive(Debug)]
pub struct Media {
    sector_bytes: u64,
    sectors: u64,
    store: Store,
    /// Sectors that were trimmed and not written since.
    trimmed: Ranges,
    /// Every range that was ever discarded, whatever became of it later.
    discards: Ranges,
    reads_as: Trimmed,
    reach: Reach,
    write_fault: Option<WriteFault>,
    /// Sectors that cannot be read; a write puts a spare in their place.
    bad: Ranges,
    /// Sectors that were marked as unreadable; a write makes them whole.
    marked: Ranges,
    hold_nothing: bool,
    show_nothing: bool,
    seed: u64,
    made_up: u64,
    named: Option<u64>,
}

impl Media {
    /// A medium.
    pub fn new(setup: Setup) -> Self {
        let mut bad = Ranges::default();
        for (first, count) in setup.bad {
            bad.insert(first, first.saturating_add(count).min(setup.sectors));
        }
        Self {
            sector_bytes: u64::from(setup.sector_bytes.max(1)),
            sectors: setup.sectors,
            store: setup.store,
            trimmed: Ranges::default(),
            discards: Ranges::default(),
            reads_as: setup.trimmed,
            reach: setup.reach,
            write_fault: None,
            bad,
            marked: Ranges::default(),
            hold_nothing: false,
            show_nothing: false,
            seed: setup.seed,
            made_up: 0,
            named: None,
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

    /// Sectors that are trimmed at present.
    pub fn trimmed_sectors(&self) -> u64 {
        self.trimmed.total()
    }

    /// Every sector that was ever discarded, also where it was written again.
    pub fn discarded(&self) -> &Ranges {
        &self.discards
    }

    /// Forgets what was discarded so far; the sectors stay as they are.
    pub fn forget_discarded(&mut self) {
        self.discards = Ranges::default();
    }

    /// Sectors that wait for a write to be replaced or made whole.
    pub fn pending(&self) -> Ranges {
        let mut all = self.bad.clone();
        for (first, end) in self.marked.iter() {
            all.insert(first, end);
        }
        all
    }

    /// The first sector of `first..first + count` that cannot be read.
    pub fn first_unreadable(&self, first: u64, count: u64) -> Option<u64> {
        let end = first.saturating_add(count);
        let (bad, marked) = (self.bad.first_in(first, end), self.marked.first_in(first, end));
        bad.into_iter().chain(marked).min()
    }

    /// Makes sectors unreadable until they are written.
    pub fn mark_unreadable(&mut self, first: u64, count: u64) {
        self.marked.insert(first, first.saturating_add(count));
    }

    /// What becomes of the writes that follow.
    pub fn set_write_fault(&mut self, fault: Option<WriteFault>) {
        self.write_fault = fault;
    }

    /// From now on writes take the length of what they are given and make up the content, as far as the store holds any.
    pub fn hold_nothing(&mut self, yes: bool) {
        self.hold_nothing = yes;
    }

    /// From now on reads bring no bytes.
    pub fn show_nothing(&mut self, yes: bool) {
        self.show_nothing = yes;
    }

    /// From now on the content that is made up follows from this name, the seed and the place: [`Media::unlike`] knows it
    /// again. Without a name, each write has its own content.
    pub fn name_writes(&mut self, name: Option<u64>) {
        self.named = name;
        if let Store::Virtual(written) = &mut self.store {
            written.name(name);
        }
    }

    /// How many of these sectors do not read as what was made up under a name; `None` where nothing is kept, or what is kept
    /// cannot be read.
    pub fn unlike(&self, first: u64, count: u64, name: u64) -> Option<u64> {
        match &self.store {
            Store::Nothing => None,
            Store::Virtual(written) => Some(written.unlike(first, first.saturating_add(count), name)),
            Store::Memory(_) | Store::File(_) => {
                let sector_len = usize::try_from(self.sector_bytes).unwrap_or(512);
                let mut expected = vec![0; sector_len];
                let mut found = vec![0; sector_len];
                let mut unlike = 0;
                for lba in first..first.saturating_add(count) {
                    let start = lba.saturating_mul(self.sector_bytes);
                    found.fill(0);
                    self.store.read(start, self.sector_bytes, &mut found).ok()?;
                    store::made_up(self.seed, lba, name, &mut expected);
                    unlike += u64::from(found != expected);
                }
                Some(unlike)
            }
        }
    }

    /// Reads whole sectors.
    pub fn read(&self, first: u64, count: u64) -> Result<Vec<u8>, MediumError> {
        if let Some(lba) = self.first_unreadable(first, count) {
            return Err(MediumError::Unreadable(lba));
        }
        if self.show_nothing {
            return Ok(Vec::new());
        }
        let len = count.saturating_mul(self.sector_bytes);
        let mut out = vec![0; usize::try_from(len).unwrap_or_default()];
        self.store
            .read(
                first.saturating_mul(self.sector_bytes),
                self.sector_bytes,
                &mut out,
            )
            .map_err(|_| MediumError::Host)?;
        if self.reads_as == Trimmed::Ones {
            for (from, to) in self.trimmed.within(first, first.saturating_add(count)) {
                let place = |lba: u64| usize::try_from((lba - first).saturating_mul(self.sector_bytes));
                if let (Ok(begin), Ok(end)) = (place(from), place(to))
                    && let Some(part) = out.get_mut(begin..end)
                {
                    part.fill(0xff);
                }
            }
        }
        Ok(out)
    }

    /// Writes whole sectors; returns how many bad ones were replaced.
    pub fn write(&mut self, first: u64, data: &[u8]) -> Result<u64, MediumError> {
        let mut count = (data.len() as u64) / self.sector_bytes;
        match self.write_fault {
            Some(WriteFault::Lost) => return Ok(0),
            Some(WriteFault::Torn) if count > 1 => count /= 2,
            _ => {}
        }
        let end = first.saturating_add(count);
        let len = usize::try_from(count.saturating_mul(self.sector_bytes)).unwrap_or_default();
        let data = data.get(..len).unwrap_or(data);
        let start = first.saturating_mul(self.sector_bytes);
        let stored = if self.hold_nothing && matches!(self.store, Store::Memory(_) | Store::File(_)) {
            self.make_up(first, count)
        } else {
            self.store.write(start, self.sector_bytes, data)
        };
        stored.map_err(|_| MediumError::Host)?;
        self.trimmed.remove(first, end);
        self.marked.remove(first, end);
        Ok(self.bad.remove(first, end))
    }

    /// Fills sectors of a store that does hold bytes with such as a store that does not would show.
    fn make_up(&mut self, first: u64, count: u64) -> std::io::Result<()> {
        const PIECE: u64 = 1024;
        self.made_up += 1;
        let sector_len = usize::try_from(self.sector_bytes).unwrap_or(512);
        let mut done = 0;
        while done < count {
            let now = (count - done).min(PIECE);
            let mut piece = vec![0; now as usize * sector_len];
            for (lba, sector) in (first + done..).zip(piece.chunks_exact_mut(sector_len)) {
                store::made_up(self.seed, lba, self.named.unwrap_or(self.made_up), sector);
            }
            let start = (first + done).saturating_mul(self.sector_bytes);
            self.store.write(start, self.sector_bytes, &piece)?;
            done += now;
        }
        Ok(())
    }

    /// Discards sectors.
    pub fn trim(&mut self, first: u64, count: u64) -> Result<(), MediumError> {
        let end = first.saturating_add(count);
        let (first, end) = match self.reach {
            Reach::Nothing => return Ok(()),
            Reach::Exact => (first, end),
            Reach::Neighbour => (first, end.saturating_add(1)),
            Reach::Widened(unit) => (
                first / unit.max(1) * unit.max(1),
                end.checked_next_multiple_of(unit.max(1)).unwrap_or(end),
            ),
        };
        let end = end.min(self.sectors);
        if end <= first {
            return Ok(());
        }
        if self.reads_as != Trimmed::Old {
            let place = |lba: u64| lba.saturating_mul(self.sector_bytes);
            self.store
                .erase(place(first), place(end), self.sector_bytes)
                .map_err(|_| MediumError::Host)?;
        }
        self.trimmed.insert(first, end);
        self.discards.insert(first, end);
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn setup(store: Store, trimmed: Trimmed) -> Setup {
        Setup {
            sectors: 1 << 30,
            sector_bytes: 512,
            store,
            trimmed,
            reach: Reach::Exact,
            bad: Vec::new(),
            seed: 1,
        }
    }

    fn memory(trimmed: Trimmed) -> Media {
        Media::new(setup(Store::memory(), trimmed))
    }

    fn chunks(media: &Media) -> usize {
        match &media.store {
            Store::Memory(chunks) => chunks.len(),
            _ => 0,
        }
    }

    #[test]
    fn sectors_keep_what_was_written_and_nothing_else() {
        let mut media = memory(Trimmed::Zeros);
        assert_eq!(media.read(5, 2).unwrap(), vec![0; 1024]);
        // Across a border of the pieces that are held.
        let data: Vec<u8> = (0..512 * 300).map(|i| (i % 251) as u8 + 1).collect();
        media.write(99, &data).unwrap();
        assert_eq!(media.read(99, 300).unwrap(), data);
        assert_eq!(media.read(98, 1).unwrap(), vec![0; 512]);
        assert_eq!(media.read(399, 1).unwrap(), vec![0; 512]);
        assert_eq!(chunks(&media), 4);
        media.write(99, &vec![0; 512 * 300]).unwrap();
        assert_eq!(chunks(&media), 0, "zeros cost nothing");
    }

    #[test]
    fn trimming_discards_exactly_the_range() {
        for (reads_as, fill) in [(Trimmed::Zeros, 0u8), (Trimmed::Ones, 0xff)] {
            let mut media = memory(reads_as);
            media.write(0, &vec![7; 512 * 64]).unwrap();
            media.trim(10, 30).unwrap();
            assert_eq!(media.read(9, 1).unwrap(), vec![7; 512]);
            assert_eq!(media.read(10, 30).unwrap(), vec![fill; 512 * 30]);
            assert_eq!(media.read(40, 1).unwrap(), vec![7; 512]);
            media.write(20, &[9; 512]).unwrap();
            assert_eq!(media.read(20, 1).unwrap(), vec![9; 512]);
            assert_eq!(media.read(21, 1).unwrap(), vec![fill; 512]);
            assert_eq!(media.trimmed_sectors(), 29);
            media.trim(15, 10).unwrap();
            assert_eq!(media.trimmed_sectors(), 30, "overlaps are merged");
            media.trim(0, 1 << 29).unwrap();
            assert_eq!(chunks(&media), 0);
        }
        let mut media = memory(Trimmed::Old);
        media.write(0, &[7; 512]).unwrap();
        media.trim(0, 1).unwrap();
        assert_eq!(media.read(0, 1).unwrap(), vec![7; 512], "the old data may stay");
    }

    #[test]
    fn a_wrong_trim_reaches_too_far_or_nowhere() {
        for (reach, kept) in [(Reach::Nothing, [7, 7, 7]), (Reach::Neighbour, [7, 0, 0])] {
            let mut media = Media::new(Setup {
                reach,
                ..setup(Store::memory(), Trimmed::Zeros)
            });
            media.write(0, &[7; 512 * 4]).unwrap();
            media.trim(1, 1).unwrap();
            for (lba, byte) in (0..).zip(kept) {
                assert_eq!(media.read(lba, 1).unwrap(), vec![byte; 512], "{reach:?} {lba}");
            }
            assert_eq!(media.read(3, 1).unwrap(), vec![7; 512]);
        }
    }

    #[test]
    fn faulty_writes_store_half_or_nothing() {
        for (fault, kept) in [(WriteFault::Torn, 2), (WriteFault::Lost, 0)] {
            let mut media = Media::new(setup(Store::memory(), Trimmed::Zeros));
            media.set_write_fault(Some(fault));
            media.write(0, &[7; 512 * 4]).unwrap();
            let mut wanted = vec![7; 512 * kept];
            wanted.resize(512 * 4, 0);
            assert_eq!(media.read(0, 4).unwrap(), wanted);
        }
    }

    #[test]
    fn bad_sectors_fail_until_they_are_written() {
        let mut media = Media::new(Setup {
            bad: vec![(100, 3)],
            ..setup(Store::memory(), Trimmed::Zeros)
        });
        assert_eq!(media.read(90, 20), Err(MediumError::Unreadable(100)));
        assert!(media.read(90, 10).is_ok());
        media.mark_unreadable(95, 1);
        assert_eq!(media.read(90, 20), Err(MediumError::Unreadable(95)));
        assert_eq!(media.pending().total(), 4);
        assert_eq!(media.write(95, &[1; 512]).unwrap(), 0, "it was only marked");
        assert_eq!(media.write(100, &[1; 1024]).unwrap(), 2);
        assert_eq!(media.read(90, 20), Err(MediumError::Unreadable(102)));
    }

    #[test]
    fn virtual_data_costs_nothing_and_differs_from_pass_to_pass() {
        let mut media = Media::new(setup(Store::Virtual(Written::new(9)), Trimmed::Zeros));
        let piece = vec![0; 512 * 1024];
        for n in 0..64 {
            media.write(n * 1024, &piece).unwrap();
        }
        let extents = |media: &Media| match &media.store {
            Store::Virtual(written) => written.extents(),
            _ => 0,
        };
        assert_eq!(extents(&media), 1);
        let first = media.read(10, 100).unwrap();
        assert_eq!(media.read(10, 100).unwrap(), first, "the same again");
        assert_eq!(
            media.read(20, 5).unwrap(),
            first[10 * 512..15 * 512],
            "at any offset"
        );
        assert_ne!(first[..512], first[512..1024], "each sector has its own");
        let ones: u32 = first.iter().map(|b| b.count_ones()).sum();
        let share = f64::from(ones) / (first.len() as f64 * 8.0);
        assert!((share - 0.5).abs() < 0.01, "{share}");
        media.write(15, &[0; 512]).unwrap();
        let second = media.read(10, 100).unwrap();
        assert_eq!(second[..5 * 512], first[..5 * 512]);
        assert_ne!(second[5 * 512..6 * 512], first[5 * 512..6 * 512]);
        assert_eq!(second[6 * 512..], first[6 * 512..]);
        media.trim(10, 4).unwrap();
        assert_eq!(media.read(10, 4).unwrap(), vec![0; 2048]);
        media.write(10, &[0; 2048]).unwrap();
        assert_ne!(media.read(10, 4).unwrap(), first[..2048], "not what was trimmed");
        assert_eq!(media.read(1 << 20, 1).unwrap(), vec![0; 512], "never written");
    }

    #[test]
    fn named_writes_are_known_again() {
        for store in [Store::memory(), Store::Virtual(Written::new(9))] {
            let mut media = Media::new(setup(store, Trimmed::Zeros));
            media.hold_nothing(true);
            media.name_writes(Some(77));
            media.write(10, &[0; 8 * 512]).unwrap();
            media.name_writes(Some(78));
            media.write(14, &[0; 2 * 512]).unwrap();
            assert_eq!(media.unlike(10, 8, 77), Some(2));
            assert_eq!(media.unlike(14, 2, 78), Some(0));
            assert_eq!(media.unlike(8, 4, 77), Some(2), "never written");
            media.set_write_fault(Some(WriteFault::Torn));
            media.name_writes(Some(79));
            media.write(10, &[0; 4 * 512]).unwrap();
            assert_eq!(media.unlike(10, 4, 79), Some(2));
            media.trim(10, 1).unwrap();
            assert_eq!(media.unlike(10, 4, 79), Some(3));
        }
        let mut media = Media::new(setup(Store::Nothing, Trimmed::Zeros));
        media.name_writes(Some(1));
        media.write(0, &[0; 512]).unwrap();
        assert_eq!(media.unlike(0, 1, 1), None);
    }

    #[test]
    fn a_store_that_holds_bytes_can_be_told_to_make_them_up() {
        let mut media = memory(Trimmed::Zeros);
        media.hold_nothing(true);
        media.write(7, &[0; 1024]).unwrap();
        media.hold_nothing(false);
        let data = media.read(7, 2).unwrap();
        assert_ne!(data[..512], data[512..]);
        assert_ne!(data[..512], [0; 512]);
    }

    #[test]
    fn a_file_holds_it_across_openings() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk");
        let bytes = 512 << 20;
        let open = || {
            Media::new(Setup {
                sectors: 1 << 20,
                ..setup(Store::file(&path, bytes).unwrap(), Trimmed::Zeros)
            })
        };
        let data: Vec<u8> = (0..512 * 64).map(|i| (i % 251) as u8 + 1).collect();
        let mut media = open();
        media.write((1 << 20) - 64, &data).unwrap();
        media.trim((1 << 20) - 10, 5).unwrap();
        drop(media);
        let mut wanted = data.clone();
        wanted[54 * 512..59 * 512].fill(0);
        assert_eq!(open().read((1 << 20) - 64, 64).unwrap(), wanted);
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), bytes);
        use std::os::unix::fs::MetadataExt;
        assert!(metadata.blocks() < 1000, "sparse: {} blocks", metadata.blocks());
        assert!(Store::file(&path, bytes * 2).is_err(), "another size");
    }

    /// Not a test of anything but speed: `cargo test --release --lib sim::media -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures"]
    fn speed() {
        for (name, store) in [
            ("memory", Store::memory()),
            ("virtual", Store::Virtual(Written::new(1))),
        ] {
            let mut media = Media::new(setup(store, Trimmed::Zeros));
            let piece = vec![0xa5; 512 << 10];
            for pass in ["write", "rewrite"] {
                let start = std::time::Instant::now();
                for n in 0..2048u64 {
                    media.write(n * 1024, &piece).unwrap();
                }
                println!("{name} {pass}: {:.2} GB/s", 1.073 / start.elapsed().as_secs_f64());
            }
            let start = std::time::Instant::now();
            for n in 0..2048u64 {
                assert_eq!(media.read(n * 1024, 1024).unwrap().len(), 512 << 10);
            }
            println!("{name} read: {:.2} GB/s", 1.073 / start.elapsed().as_secs_f64());
        }
    }
}
