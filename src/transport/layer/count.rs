//! Counts the commands that are really sent, and the time they take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::time::SharedClock;
use crate::transport::{Command, Completion, Limits, Recovery, Tag, Transport, TransportError};

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
    fn device(&self) -> &str {
        self.inner.device()
    }
    fn clock(&self) -> SharedClock {
        self.inner.clock()
    }
    fn limits(&self) -> Limits {
        self.inner.limits()
    }
    fn submit(&mut self, command: Command) -> Result<Tag, TransportError> {
        self.count.0.fetch_add(1, Ordering::Relaxed);
        self.inner.submit(command)
    }
    fn reap(&mut self, wait: Duration) -> Result<Option<(Tag, Completion)>, TransportError> {
        self.inner.reap(wait)
    }
    fn cancel(&mut self, tag: Tag) -> Result<(), TransportError> {
        self.inner.cancel(tag)
    }
    fn recover(&mut self, how: Recovery) -> Result<(), TransportError> {
        self.inner.recover(how)
    }
}
