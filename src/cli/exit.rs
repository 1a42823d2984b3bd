//! Exit codes: their meaning, and which one counts when several devices disagree.

use crate::bridge::{BridgeError, Failure};
use crate::drive::DriveError;
use crate::transport::TransportError;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done and well.
    Done,
    /// Done, and the answer is bad.
    BadAnswer,
    /// Usage or bad input.
    Usage,
    /// No such device, no rights, busy.
    NoDevice,
    /// Transport or device failure.
    Failure,
    /// Not supported by drive or bridge.
    Unsupported,
    /// Refused for safety.
    Refused,
    /// Left asleep.
    Asleep,
    /// Interrupted.
    Interrupted,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::BadAnswer => 1,
            Self::Usage => 2,
            Self::NoDevice => 3,
            Self::Failure => 4,
            Self::Unsupported => 5,
            Self::Refused => 6,
            Self::Asleep => 7,
            Self::Interrupted => 130,
        }
    }

    fn gravity(self) -> u8 {
        match self {
            Self::Interrupted => 8,
            Self::Failure => 7,
            Self::Refused => 6,
            Self::NoDevice => 5,
            Self::Usage => 4,
            Self::BadAnswer => 3,
            Self::Unsupported => 2,
            Self::Asleep => 1,
            Self::Done => 0,
        }
    }

    /// The more serious of two, in the order 4 6 3 2 1 5 7 0.
    pub fn worst(self, other: Self) -> Self {
        if other.gravity() > self.gravity() {
            other
        } else {
            self
        }
    }

    /// What an error means to the shell.
    pub fn of(error: &DriveError) -> Self {
        match error {
            DriveError::Transport(error) | DriveError::Harmed { source: error, .. } => {
                Self::of_transport(error)
            }
            DriveError::Bridge(BridgeError::Transport(error)) => Self::of_transport(error),
            DriveError::Bridge(error) => match error.failure() {
                Some(
                    Failure::CannotCarry { .. } | Failure::FieldRefused { .. } | Failure::Aborted { .. },
                ) => Self::Unsupported,
                _ => Self::Failure,
            },
            DriveError::BadName { .. } | DriveError::Replay(_) => Self::Usage,
            DriveError::Locked { .. } => Self::NoDevice,
            DriveError::Asleep { .. } => Self::Asleep,
            DriveError::NativeNvme { .. }
            | DriveError::NoPassThrough { .. }
            | DriveError::NoTemperature { .. }
            | DriveError::NoSmart { .. } => Self::Unsupported,
            DriveError::HarmedBefore { .. } | DriveError::Avoided { .. } => Self::Refused,
            DriveError::Garbage { .. } | DriveError::Answered { .. } | DriveError::Odd { .. } => {
                Self::Failure
            }
        }
    }

    fn of_transport(error: &TransportError) -> Self {
        match error {
            TransportError::NotFound { .. }
            | TransportError::PermissionDenied { .. }
            | TransportError::Busy { .. } => Self::NoDevice,
            TransportError::NotScsi { .. } => Self::Usage,
            TransportError::Refused { .. } | TransportError::NotPermitted { .. } => Self::Refused,
            TransportError::TooLarge { .. } => Self::Usage,
            _ => Self::Failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Exit;

    #[test]
    fn the_most_serious_one_counts() {
        let order = [
            Exit::Failure,
            Exit::Refused,
            Exit::NoDevice,
            Exit::Usage,
            Exit::BadAnswer,
            Exit::Unsupported,
            Exit::Asleep,
            Exit::Done,
        ];
        assert_eq!(order.map(Exit::code), [4, 6, 3, 2, 1, 5, 7, 0]);
        for (i, worse) in order.iter().enumerate() {
            for better in &order[i..] {
                assert_eq!(better.worst(*worse), *worse);
                assert_eq!(worse.worst(*better), *worse);
            }
        }
    }
}
