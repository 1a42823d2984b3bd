//! A set of used units that takes little room where all is free or all is used.

/// Units of one page: a page is all free, all used, or mixed.
const PAGE_UNITS: u64 = 1 << 15;
const WORD_UNITS: u64 = 64;
const PAGE_WORDS: usize = (PAGE_UNITS / WORD_UNITS) as usize;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Page {
    Free,
    Used,
    Mixed(Box<[u64; PAGE_WORDS]>),
}

/// Which allocation units (blocks, clusters) are used. Memory grows with how mixed the map is, hardly with the volume:
/// 24 bytes for each 32,768 units that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedMap {
    units: u64,
    pages: Vec<Page>,
}

impl UsedMap {
    /// A map of so many units, all of them free.
    pub fn all_free(units: u64) -> Self {
        Self::filled(units, Page::Free)
    }

    /// A map of so many units, all of them used.
    pub fn all_used(units: u64) -> Self {
        Self::filled(units, Page::Used)
    }

    fn filled(units: u64, page: Page) -> Self {
        let pages = usize::try_from(units.div_ceil(PAGE_UNITS)).unwrap_or(usize::MAX);
        Self {
            units,
            pages: vec![page; pages],
        }
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// Marks `count` units from `start` on as used; what lies past the end is ignored.
    pub fn use_units(&mut self, start: u64, count: u64) {
        self.mark(start, count, true);
    }

    /// Marks `count` units from `start` on as free; what lies past the end is ignored.
    pub fn free_units(&mut self, start: u64, count: u64) {
        self.mark(start, count, false);
    }

    fn mark(&mut self, start: u64, count: u64, used: bool) {
        let end = start.saturating_add(count).min(self.units);
        let mut at = start;
        while at < end {
            let page_start = at / PAGE_UNITS * PAGE_UNITS;
            let stop = end.min(page_start + PAGE_UNITS);
            let whole = at == page_start && stop == self.units.min(page_start + PAGE_UNITS);
            let Some(page) = page_index(at).and_then(|i| self.pages.get_mut(i)) else {
                return;
            };
            let uniform = if used { Page::Used } else { Page::Free };
            if whole {
                *page = uniform;
            } else if *page != uniform {
                let words = mixed(page);
                for_words(at - page_start, stop - page_start, |word, mask| {
                    if let Some(word) = words.get_mut(word) {
                        if used {
                            *word |= mask;
                        } else {
                            *word &= !mask;
                        }
                    }
                });
            }
            at = stop;
        }
    }

    /// Takes a bitmap as it stands on disk (bit 0 of byte 0 first, 1 is used) for the `count` units from `start` on.
    /// Bits past the end of the map or of `bytes` change nothing.
    pub fn load(&mut self, start: u64, count: u64, bytes: &[u8]) {
        let count = count.min((bytes.len() as u64).saturating_mul(8));
        let bit = |i: u64| {
            usize::try_from(i / 8)
                .ok()
                .and_then(|byte| bytes.get(byte))
                .is_some_and(|byte| byte >> (i % 8) & 1 == 1)
        };
        let mut at = 0;
        while at < count {
            let used = bit(at);
            let run = run_length(bytes, at, count, used);
            self.mark(start.saturating_add(at), run, used);
            at += run;
        }
    }

    /// Whether this unit is used; units past the end are.
    pub fn is_used(&self, unit: u64) -> bool {
        self.next(unit, unit.saturating_add(1), true).is_some() || unit >= self.units
    }

    /// The first free unit among `count` from `start` on. Units past the end are never free.
    pub fn first_free(&self, start: u64, count: u64) -> Option<u64> {
        self.next(start, start.saturating_add(count).min(self.units), false)
    }

    /// The first used unit among `count` from `start` on; past the end all are.
    pub fn first_used(&self, start: u64, count: u64) -> Option<u64> {
        let end = start.saturating_add(count);
        self.next(start, end.min(self.units), true)
            .or_else(|| (end > self.units && count > 0).then(|| start.max(self.units)))
    }

    /// The first unit of this kind in `start..end`, which lies within the map.
    fn next(&self, start: u64, end: u64, used: bool) -> Option<u64> {
        let end = end.min(self.units);
        let mut at = start;
        while at < end {
            let page_start = at / PAGE_UNITS * PAGE_UNITS;
            let stop = end.min(page_start + PAGE_UNITS);
            match page_index(at).and_then(|i| self.pages.get(i))? {
                Page::Free if !used => return Some(at),
                Page::Used if used => return Some(at),
                Page::Free | Page::Used => {}
                Page::Mixed(words) => {
                    let mut found = None;
                    for_words(at - page_start, stop - page_start, |index, mask| {
                        let word = words.get(index).copied().unwrap_or_default();
                        let wanted = if used { word } else { !word } & mask;
                        if found.is_none() && wanted != 0 {
                            found = Some(index as u64 * WORD_UNITS + u64::from(wanted.trailing_zeros()));
                        }
                    });
                    if let Some(found) = found {
                        return Some(page_start + found);
                    }
                }
            }
            at = stop;
        }
        None
    }

    /// How many of `count` units from `start` on are free.
    pub fn count_free(&self, start: u64, count: u64) -> u64 {
        let end = start.saturating_add(count).min(self.units);
        let mut free = 0;
        let mut at = start;
        while at < end {
            let page_start = at / PAGE_UNITS * PAGE_UNITS;
            let stop = end.min(page_start + PAGE_UNITS);
            match page_index(at).and_then(|i| self.pages.get(i)) {
                Some(Page::Free) => free += stop - at,
                Some(Page::Used) | None => {}
                Some(Page::Mixed(words)) => {
                    for_words(at - page_start, stop - page_start, |index, mask| {
                        let word = words.get(index).copied().unwrap_or(u64::MAX);
                        free += u64::from((!word & mask).count_ones());
                    });
                }
            }
            at = stop;
        }
        free
    }

    /// The runs of free units as (start, count), merged and in order.
    pub fn free_runs(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(at, self.units, false)?;
            let end = self.next(start, self.units, true).unwrap_or(self.units);
            at = end;
            Some((start, end - start))
        })
    }
}

fn page_index(unit: u64) -> Option<usize> {
    usize::try_from(unit / PAGE_UNITS).ok()
}

fn mixed(page: &mut Page) -> &mut [u64; PAGE_WORDS] {
    let fill = if *page == Page::Used { u64::MAX } else { 0 };
    if !matches!(page, Page::Mixed(_)) {
        *page = Page::Mixed(Box::new([fill; PAGE_WORDS]));
    }
    match page {
        Page::Mixed(words) => words,
        // It was made one just now.
        Page::Free | Page::Used => unreachable!("a mixed page"),
    }
}

/// Calls with each word of a page that `start..end` touches, and the mask of its units.
fn for_words(start: u64, end: u64, mut f: impl FnMut(usize, u64)) {
    let mut at = start;
    while at < end {
        let word_start = at / WORD_UNITS * WORD_UNITS;
        let stop = end.min(word_start + WORD_UNITS);
        let ones = stop - at;
        let mask = if ones == WORD_UNITS {
            u64::MAX
        } else {
            ((1 << ones) - 1) << (at - word_start)
        };
        f((at / WORD_UNITS) as usize, mask);
        at = stop;
    }
}

/// How many bits from `at` on are `used`, at least one.
fn run_length(bytes: &[u8], at: u64, count: u64, used: bool) -> u64 {
    let alike = if used { 0xff } else { 0x00 };
    let mut end = at + 1;
    while end < count {
        let Some(byte) = usize::try_from(end / 8).ok().and_then(|i| bytes.get(i)) else {
            break;
        };
        if end.is_multiple_of(8) && *byte == alike && end + 8 <= count {
            end += 8;
        } else if (byte >> (end % 8) & 1 == 1) == used {
            end += 1;
        } else {
            break;
        }
    }
    end - at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Against a plain vector of booleans, over marks and loads at random.
        #[test]
        fn behaves_as_a_vector_of_flags(
            units in 1u64..100_000,
            steps in prop::collection::vec((0u64..110_000, 0u64..70_000, any::<bool>(), any::<bool>(), any::<u64>()), 1..12),
            probes in prop::collection::vec((0u64..110_000, 0u64..70_000), 1..8),
        ) {
            let mut map = UsedMap::all_free(units);
            let mut flags = vec![false; units as usize];
            for (start, count, used, load, seed) in steps {
                let end = (start + count).min(units);
                if load {
                    let mut word = seed | 1;
                    let bytes: Vec<u8> = (0..count.div_ceil(8)).map(|i| {
                        word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                        if i % 97 < 40 { 0 } else if i % 97 < 70 { 0xff } else { (word >> 56) as u8 }
                    }).collect();
                    map.load(start, count, &bytes);
                    for at in start..end {
                        let bit = at - start;
                        flags[at as usize] = bytes[(bit / 8) as usize] >> (bit % 8) & 1 == 1;
                    }
                } else {
                    if used { map.use_units(start, count) } else { map.free_units(start, count) }
                    for at in start..end {
                        flags[at as usize] = used;
                    }
                }
            }
            for (start, count) in probes {
                let range = start..(start + count).min(units);
                let free = range.clone().find(|at| !flags[*at as usize]);
                prop_assert_eq!(map.first_free(start, count), free);
                let used = range.clone().find(|at| flags[*at as usize])
                    .or((start + count > units && count > 0).then_some(start.max(units)));
                prop_assert_eq!(map.first_used(start, count), used);
                let count_free = range.filter(|at| !flags[*at as usize]).count() as u64;
                prop_assert_eq!(map.count_free(start, count), count_free);
            }
            let runs: Vec<(u64, u64)> = map.free_runs().collect();
            let mut expected = Vec::new();
            let mut at = 0;
            while at < units {
                let start = at;
                while at < units && !flags[at as usize] { at += 1; }
                if at > start { expected.push((start, at - start)); }
                while at < units && flags[at as usize] { at += 1; }
            }
            prop_assert_eq!(runs, expected);
        }
    }

    #[test]
    fn past_the_end_all_is_used() {
        let map = UsedMap::all_free(10);
        assert!(map.is_used(10));
        assert!(!map.is_used(9));
        assert_eq!(map.first_free(10, 5), None);
        assert_eq!(map.first_used(8, 5), Some(10));
    }
}
