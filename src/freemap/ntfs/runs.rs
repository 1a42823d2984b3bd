//! Mapping pairs: which clusters hold a non-resident attribute.

/// Clusters in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The first cluster within the attribute.
    pub vcn: u64,
    /// The first cluster within the volume; none for a hole.
    pub lcn: Option<u64>,
    /// How many.
    pub clusters: u64,
}

impl Run {
    /// One past its last cluster within the attribute.
    pub fn end_vcn(&self) -> u64 {
        self.vcn.saturating_add(self.clusters)
    }
}

/// The runs of the mapping pairs of one attribute record, each checked to lie within the volume.
pub(super) struct Runs<'a> {
    pairs: &'a [u8],
    vcn: u64,
    lcn: i64,
    volume_clusters: u64,
    done: bool,
}

impl<'a> Runs<'a> {
    /// `pairs` starts at the first pair and may go on behind the terminator; `lowest_vcn` is that of the attribute record.
    pub fn new(pairs: &'a [u8], lowest_vcn: u64, volume_clusters: u64) -> Self {
        Self {
            pairs,
            vcn: lowest_vcn,
            lcn: 0,
            volume_clusters,
            done: false,
        }
    }

    fn pair(&mut self) -> Result<Option<Run>, &'static str> {
        let (head, rest) = self.pairs.split_first().ok_or("a run list without its end")?;
        if *head == 0 {
            return Ok(None);
        }
        let (length_bytes, delta_bytes) = (usize::from(head & 15), usize::from(head >> 4));
        let (length, rest) = rest
            .split_at_checked(length_bytes)
            .ok_or("a run list that is cut off")?;
        let (delta, rest) = rest
            .split_at_checked(delta_bytes)
            .ok_or("a run list that is cut off")?;
        let clusters = signed(length)
            .and_then(|n| u64::try_from(n).ok())
            .filter(|n| *n > 0)
            .ok_or("a run with an impossible length")?;
        let end_vcn = self
            .vcn
            .checked_add(clusters)
            .filter(|end| *end <= i64::MAX as u64);
        let end_vcn = end_vcn.ok_or("a run list that is too long")?;
        let lcn = if delta.is_empty() {
            None
        } else {
            let lcn = signed(delta).and_then(|delta| self.lcn.checked_add(delta));
            self.lcn = lcn.ok_or("a run with an impossible distance")?;
            let lcn = u64::try_from(self.lcn).map_err(|_| "a run before the volume")?;
            if lcn
                .checked_add(clusters)
                .is_none_or(|end| end > self.volume_clusters)
            {
                return Err("a run past the end of the volume");
            }
            Some(lcn)
        };
        let run = Run {
            vcn: self.vcn,
            lcn,
            clusters,
        };
        self.vcn = end_vcn;
        self.pairs = rest;
        Ok(Some(run))
    }
}

impl Iterator for Runs<'_> {
    type Item = Result<Run, &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let pair = self.pair();
        self.done = !matches!(pair, Ok(Some(_)));
        pair.transpose()
    }
}

/// A little-endian two's complement number of 1 to 8 bytes.
fn signed(bytes: &[u8]) -> Option<i64> {
    if bytes.len() > 8 {
        return None;
    }
    let fill = if bytes.last()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [fill; 8];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    Some(i64::from_le_bytes(wide))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(pairs: &[u8], clusters: u64) -> Result<Vec<Run>, &'static str> {
        Runs::new(pairs, 0, clusters).collect()
    }

    #[test]
    fn distances_are_signed_and_holes_have_none() {
        let pairs = [0x21, 3, 0x00, 0x01, 0x01, 5, 0x11, 2, 0xf0, 0];
        let run = |vcn, lcn, clusters| Run { vcn, lcn, clusters };
        assert_eq!(
            all(&pairs, 0x200),
            Ok(vec![
                run(0, Some(0x100), 3),
                run(3, None, 5),
                run(8, Some(0xf0), 2)
            ])
        );
    }

    #[test]
    fn the_impossible_is_refused() {
        assert!(all(&[0x11, 2, 9, 0], 11).is_ok());
        for pairs in [
            &[][..],
            &[0x11, 2],
            &[0x11, 2, 9],
            &[0x11, 3, 9, 0],
            &[0x11, 2, 0xff, 0],
            &[0x11, 0, 1, 0],
            &[0x11, 0x80, 1, 0],
            &[0x10, 1, 0],
            &[0x19, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0],
            &[0x08, 255, 255, 255, 255, 255, 255, 255, 127, 0x01, 1, 0],
        ] {
            assert!(all(pairs, 11).is_err(), "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(pairs in prop::collection::vec(any::<u8>(), 0..64), vcn: u64, clusters: u64) {
            for run in Runs::new(&pairs, vcn, clusters).flatten() {
                prop_assert!(run.lcn.is_none_or(|lcn| lcn + run.clusters <= clusters));
            }
        }
    }
}
