//! Counts the commands that are really sent, and the time they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::transport::{Command, Tag, Transport, TransportError};

/// Commands sent so far; shared with whoever reports the cost.
#[derive(Debug, Clone, Default)]
pub struct CommandCount(Arc<AtomicU64>);

impl CommandCount {
    /// How many commands went to the device.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A transport that counts. It sits innermost, so that refused commands do not count.
#[derive(Debug)]
pub struct Count<T> {
    inner: T,
    count: CommandCount,
}

impl<T: Transport> Count<T> {
    /// Wraps `inner`, adding to `count`.
    pub fn new(inner: T, count: CommandCount) -> Self {
        Self { inner, count }
    }
}

impl<T: Transport> Transport for Count<T> {
    pass_on!(device, clock, limits, reap, cancel, recover);

    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        self.count.0.fetch_add(1, Ordering::Relaxed);
        self.inner.submit(command)
    }
}
