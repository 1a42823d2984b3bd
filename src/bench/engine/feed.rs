//! The requests of a stage, one after the other. Pure, and the same for the same seed.

use super::actor::Request;
use super::plan::{Pattern, Stage};
use super::random::Xoshiro;
use crate::bench::series::Op;

/// Files begin at such borders.
const FILE_ALIGN: u64 = 4096;

/// Yields requests until the stage has no more.
#[derive(Debug)]
pub struct Feed {
    pattern: Pattern,
    op: Op,
    block: u64,
    /// Bytes that may still be asked for.
    left: Option<u64>,
    at: u64,
    /// File, and how far in it.
    file: (usize, u64),
    /// Reads and requests that are left of the present hundred: the share is kept, only the order is drawn.
    deck: (u64, u64),
    rng: Xoshiro,
    next_id: u64,
}

impl Feed {
    /// From the start of a stage; ids go on from `first_id`.
    pub fn new(stage: &Stage, seed: u64, first_id: u64) -> Self {
        Self {
            pattern: stage.pattern.clone(),
            op: stage.op,
            block: stage.block_bytes.max(1),
            left: stage.bytes,
            at: 0,
            file: (0, 0),
            deck: (0, 0),
            rng: Xoshiro::new(seed),
            next_id: first_id,
        }
    }

    /// The id that comes next.
    pub fn next_id(&self) -> u64 {
        self.next_id
    }

    /// The next request; up to `most` neighbours of a sequential stage in one.
    pub fn next(&mut self, most: u32) -> Option<Request> {
        if self.left == Some(0) {
            return None;
        }
        let mut content = None;
        let (op, offset_bytes, len_bytes) = match &self.pattern {
            Pattern::Idle => return None,
            Pattern::Sequential { span_bytes } => {
                if self.at >= *span_bytes {
                    self.at = 0;
                }
                let most = self
                    .block
                    .saturating_mul(u64::from(most.max(1)))
                    .min(span_bytes.saturating_sub(self.at))
                    .min(self.left.unwrap_or(u64::MAX));
                let offset = self.at;
                self.at += most;
                (self.op, offset, most)
            }
            Pattern::Random {
                span_bytes,
                read_percent,
            } => {
                if self.deck.1 == 0 {
                    self.deck = (u64::from(*read_percent).min(100), 100);
                }
                let (reads, all) = &mut self.deck;
                let op = if self.rng.below(*all) < *reads {
                    *reads -= 1;
                    Op::Read
                } else {
                    Op::Write
                };
                *all -= 1;
                let offset = self
                    .rng
                    .below((span_bytes / self.block).max(1))
                    .saturating_mul(self.block);
                (op, offset, self.block.min(self.left.unwrap_or(u64::MAX)))
            }
            Pattern::Files(files) => {
                while files.get(self.file.0).is_some_and(|f| f.bytes == 0) {
                    self.file = (self.file.0 + 1, 0);
                }
                let (number, done) = self.file;
                let file = files.get(number)?;
                let size = file.bytes;
                content = Some(file.content);
                let len = self.block.min(size.saturating_sub(done));
                let offset = self.at + done;
                if done + len >= size {
                    self.at += size.next_multiple_of(FILE_ALIGN);
                    self.file = (number + 1, 0);
                } else {
                    self.file = (number, done + len);
                }
                (self.op, offset, len)
            }
        };
        // An empty request would move nothing, for ever.
        if len_bytes == 0 {
            return None;
        }
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(len_bytes);
        }
        let id = self.next_id;
        self.next_id += 1;
        Some(Request {
            id,
            op,
            offset_bytes,
            len_bytes,
            merged: u32::try_from(len_bytes.div_ceil(self.block))
                .unwrap_or(u32::MAX)
                .max(1),
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bench::engine::plan::{Copied, Options, Workload, plan};

    fn stage(pattern: Pattern, block_bytes: u64, bytes: Option<u64>) -> Stage {
        let options = Options {
            workload: Workload::Seq,
            ..Options::default()
        };
        let mut stage = plan(&options, 1 << 40).unwrap().stages.remove(0);
        stage.pattern = pattern;
        stage.block_bytes = block_bytes;
        stage.bytes = bytes;
        stage.time = None;
        stage
    }

    fn files(sizes: &[u64]) -> Arc<[Copied]> {
        let numbered = sizes.iter().zip(7..);
        numbered
            .map(|(bytes, content)| Copied {
                bytes: *bytes,
                content,
            })
            .collect()
    }

    fn all(feed: &mut Feed, most: u32) -> Vec<(u64, u64)> {
        std::iter::from_fn(|| feed.next(most))
            .map(|r| (r.offset_bytes, r.len_bytes))
            .collect()
    }

    #[test]
    fn sequential_requests_wrap_and_end_with_the_bytes() {
        let stage = stage(Pattern::Sequential { span_bytes: 10_000 }, 4096, Some(15_000));
        let mut feed = Feed::new(&stage, 1, 7);
        assert_eq!(
            all(&mut feed, 1),
            [(0, 4096), (4096, 4096), (8192, 1808), (0, 4096), (4096, 904)]
        );
        assert_eq!(feed.next_id(), 12);
        let merged = all(&mut Feed::new(&stage, 1, 0), 2);
        assert_eq!(merged, [(0, 8192), (8192, 1808), (0, 5000)]);
    }

    #[test]
    fn nothing_to_move_is_no_request() {
        let sizes = files(&[0, 100]);
        for (pattern, requests) in [
            (Pattern::Sequential { span_bytes: 0 }, 0),
            (Pattern::Files(sizes), 1),
        ] {
            let stage = stage(pattern, 4096, None);
            assert_eq!(all(&mut Feed::new(&stage, 1, 0), 8).len(), requests);
        }
    }

    #[test]
    fn files_lie_one_behind_the_other() {
        let sizes = files(&[5000, 100, 8192]);
        let stage = stage(Pattern::Files(sizes), 4096, None);
        assert_eq!(
            all(&mut Feed::new(&stage, 1, 0), 8),
            [
                (0, 4096),
                (4096, 904),
                (8192, 100),
                (12_288, 4096),
                (16_384, 4096)
            ]
        );
    }

    #[test]
    fn random_requests_are_aligned_mixed_and_the_same_each_time() {
        let pattern = Pattern::Random {
            span_bytes: 1 << 20,
            read_percent: 70,
        };
        let stage = stage(pattern, 4096, Some(4096 * 10_000));
        let take = |seed| {
            let mut feed = Feed::new(&stage, seed, 0);
            std::iter::from_fn(|| feed.next(1)).collect::<Vec<_>>()
        };
        let requests = take(3);
        assert_eq!(requests, take(3));
        assert_ne!(requests, take(4));
        assert_eq!(requests.len(), 10_000);
        assert!(
            requests
                .iter()
                .all(|r| r.offset_bytes % 4096 == 0 && r.offset_bytes < 1 << 20)
        );
        let reads = requests.iter().filter(|r| r.op == Op::Read).count();
        assert_eq!(reads, 7000);
    }
}
