//! Wrappers that are transports themselves, so that one stack runs traced, recorded, replayed or guarded.

pub mod count;
pub mod guard;
pub mod name;
pub mod record;
pub mod replay;
pub mod trace;
pub mod xchg;
