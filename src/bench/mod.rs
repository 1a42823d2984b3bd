//! Measuring: series of rate and temperature, what made a rate fall, and the runs that produce such series.
//!
//! Engine, sampler and detector are pure: whoever drives them feeds events and time.

pub mod detect;
pub mod engine;
pub mod import;
pub mod run;
pub mod series;
pub mod verdict;
