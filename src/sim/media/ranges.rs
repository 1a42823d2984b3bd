//! Sets of sectors as disjoint ranges.

use std::collections::BTreeMap;

/// A set of sectors, held as start → end.
#[derive(Debug, Clone, Default)]
pub struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Adds `first..end`, merged with what it touches.
    pub fn insert(&mut self, first: u64, end: u64) {
        if end <= first {
            return;
        }
        let (mut from, mut to) = (first, end);
        let touching: Vec<(u64, u64)> = self
            .0
            .range(..=end)
            .rev()
            .take_while(|(_, stop)| **stop >= first)
            .map(|(start, stop)| (*start, *stop))
            .collect();
        for (start, stop) in touching {
            self.0.remove(&start);
            from = from.min(start);
            to = to.max(stop);
        }
        self.0.insert(from, to);
    }

    /// Takes `first..end` out; returns how many sectors of it were in.
    pub fn remove(&mut self, first: u64, end: u64) -> u64 {
        let mut gone = 0;
        for (from, to) in self.within(first, end) {
            gone += to - from;
        }
        if gone == 0 {
            return 0;
        }
        let touching: Vec<(u64, u64)> = self
            .0
            .range(..end)
            .rev()
            .take_while(|(_, stop)| **stop > first)
            .map(|(start, stop)| (*start, *stop))
            .collect();
        for (start, stop) in touching {
            self.0.remove(&start);
            if start < first {
                self.0.insert(start, first);
            }
            if stop > end {
                self.0.insert(end, stop);
            }
        }
        gone
    }

    /// The parts that lie inside `first..end`, in descending order.
    pub fn within(&self, first: u64, end: u64) -> Vec<(u64, u64)> {
        self.0
            .range(..end)
            .rev()
            .take_while(|(_, stop)| **stop > first)
            .map(|(start, stop)| ((*start).max(first), (*stop).min(end)))
            .collect()
    }

    /// The lowest member of `first..end`.
    pub fn first_in(&self, first: u64, end: u64) -> Option<u64> {
        self.within(first, end).last().map(|(from, _)| *from)
    }

    /// All ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }

    /// Number of members.
    pub fn total(&self) -> u64 {
        self.iter().map(|(start, end)| end.saturating_sub(start)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_merge_split_and_count() {
        let mut set = Ranges::default();
        set.insert(10, 20);
        set.insert(20, 30);
        set.insert(5, 8);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(5, 8), (10, 30)]);
        assert_eq!(set.first_in(8, 100), Some(10));
        assert_eq!(set.first_in(12, 100), Some(12));
        assert_eq!(set.first_in(30, 100), None);
        assert_eq!(set.remove(7, 12), 3);
        assert_eq!(set.iter().collect::<Vec<_>>(), [(5, 7), (12, 30)]);
        assert_eq!(set.remove(15, 16), 1);
        assert_eq!(set.total(), 19);
        assert_eq!(set.remove(8, 12), 0);
        set.insert(3, 3);
        assert_eq!(set.total(), 19);
    }
}
