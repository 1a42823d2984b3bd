//! Wrappers that are transports themselves.

pub mod name;
