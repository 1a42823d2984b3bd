//! ATA pages against smartctl, hdparm and libatasmart.

use std::path::Path;

use crate::Tally;

/// Compares every ATA kind.
pub fn run(_root: &Path, _tally: &mut Tally) {}
