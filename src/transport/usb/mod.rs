//! USB: what a mass storage device says of itself in its descriptors.

pub mod descriptors;
