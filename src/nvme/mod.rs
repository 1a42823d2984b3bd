//! NVMe: what the pages of a controller mean. Pure functions over bytes.
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]
