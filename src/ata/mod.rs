//! ATA: what the sectors of a drive mean. Pure functions over bytes.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod attributes;
pub mod commands;
pub mod devstat;
pub mod dsm;
pub mod gplog;
pub mod identify;
pub mod power;
pub mod sct;
pub mod smart;
