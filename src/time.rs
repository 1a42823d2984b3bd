//! Time is an argument: a real clock for hardware, a virtual one for the simulator.
//!
//! Nothing below the command line asks the operating system for the time except through [`Clock`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where a device's time comes from: its monotonic clock, its waiting, and its wall time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Time since the clock was made.
    fn now(&self) -> Duration;
    /// Lets `how_long` pass: a sleeping thread on hardware, an addition on the virtual clock.
    fn sleep(&self, how_long: Duration);
    /// Wall time as RFC 3339 in UTC, whole milliseconds; a fixed epoch plus the virtual time on `sim:`.
    fn rfc3339(&self) -> String;
    /// Whether the time is made up.
    fn is_virtual(&self) -> bool {
        false
    }
}

/// A clock shared by everything that works on one device.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's monotonic clock.
#[derive(Debug)]
pub struct RealClock {
    start: Instant,
}

impl RealClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
        }
    }

    /// The same, ready to share.
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, how_long: Duration) {
        std::thread::sleep(how_long);
    }

    fn rfc3339(&self) -> String {
        let now = jiff::Timestamp::now();
        jiff::Timestamp::from_millisecond(now.as_millisecond())
            .map_or_else(|_| now.to_string(), |t| format!("{t:.3}"))
    }
}

/// 2024-01-01T00:00:00Z, the instant at which every simulation starts.
const SIM_EPOCH_UNIX_S: i64 = 1_704_067_200;

/// A clock that moves only when it is told to.
#[derive(Debug, Default)]
pub struct VirtualClock {
    now: Mutex<Duration>,
}

impl VirtualClock {
    /// A clock at zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now = now.saturating_add(by);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self, how_long: Duration) {
        self.advance(how_long);
    }

    fn rfc3339(&self) -> String {
        let since_epoch_ms = i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX);
        let at = SIM_EPOCH_UNIX_S
            .saturating_mul(1000)
            .saturating_add(since_epoch_ms);
        jiff::Timestamp::from_millisecond(at).map_or_else(|_| String::from("unknown"), |t| format!("{t:.3}"))
    }

    fn is_virtual(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_moves_only_when_told() {
        let clock = VirtualClock::new();
        assert_eq!(clock.now(), Duration::ZERO);
        assert_eq!(clock.rfc3339(), "2024-01-01T00:00:00.000Z");
        clock.sleep(Duration::from_millis(3_600_250));
        assert_eq!(clock.now(), Duration::from_millis(3_600_250));
        assert_eq!(clock.rfc3339(), "2024-01-01T01:00:00.250Z");
    }
}
