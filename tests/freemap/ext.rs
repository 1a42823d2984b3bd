//! Random ext volumes.

use crate::support::Maker;

/// What makes them.
pub fn makers() -> Vec<Box<dyn Maker>> {
    Vec::new()
}
