//! Volumes by hand.
