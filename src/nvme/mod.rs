//! NVMe: what the pages of a controller mean. Pure functions over bytes.
#![deny(clippy::indexing_slicing)]
