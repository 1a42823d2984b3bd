//! Power mode of an ATA drive, from the COUNT that CHECK POWER MODE returns.

use serde::Serialize;

/// What CHECK POWER MODE says (ACS-4, "CHECK POWER MODE command", COUNT output).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PowerMode {
    /// 00h: standby, spun down. A register that the bridge did not return looks the same.
    Standby,
    /// 01h: standby_y.
    StandbyY,
    /// 40h: the media is spun down, a non-volatile cache serves the host.
    NvCacheSpunDown,
    /// 41h: the media is spinning up or up, a non-volatile cache serves the host.
    NvCacheSpunUp,
    /// 80h: idle.
    Idle,
    /// 81h: idle_a.
    IdleA,
    /// 82h: idle_b.
    IdleB,
    /// 83h: idle_c.
    IdleC,
    /// FFh: active or idle.
    ActiveOrIdle,
    /// Any other value.
    #[serde(untagged)]
    Other(u8),
}

impl PowerMode {
    /// From the low byte of COUNT.
    pub fn from_count(count: u8) -> Self {
        match count {
            0x00 => Self::Standby,
            0x01 => Self::StandbyY,
            0x40 => Self::NvCacheSpunDown,
            0x41 => Self::NvCacheSpunUp,
            0x80 => Self::Idle,
            0x81 => Self::IdleA,
            0x82 => Self::IdleB,
            0x83 => Self::IdleC,
            0xff => Self::ActiveOrIdle,
            other => Self::Other(other),
        }
    }

    /// Whether the media turns (or is flash that answers at once), `None` for values of unknown meaning.
    ///
    /// `Some(false)` is to be believed only for drives that were seen awake before: see [`PowerMode::Standby`].
    pub fn is_awake(self) -> Option<bool> {
        match self {
            Self::Standby | Self::StandbyY | Self::NvCacheSpunDown => Some(false),
            Self::NvCacheSpunUp
            | Self::Idle
            | Self::IdleA
            | Self::IdleB
            | Self::IdleC
            | Self::ActiveOrIdle => Some(true),
            Self::Other(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_counts_say_whether_the_drive_is_awake() {
        let awake: Vec<u8> = (0..=255)
            .filter(|&c| PowerMode::from_count(c).is_awake() == Some(true))
            .collect();
        let asleep: Vec<u8> = (0..=255)
            .filter(|&c| PowerMode::from_count(c).is_awake() == Some(false))
            .collect();
        assert_eq!(awake, [0x41, 0x80, 0x81, 0x82, 0x83, 0xff]);
        assert_eq!(asleep, [0x00, 0x01, 0x40]);
        assert_eq!(PowerMode::from_count(0x5e), PowerMode::Other(0x5e));
    }

    #[test]
    fn names_are_words() {
        let json = serde_json::to_string(&PowerMode::ActiveOrIdle).unwrap();
        assert_eq!(json, "\"active_or_idle\"");
        assert_eq!(serde_json::to_string(&PowerMode::Other(7)).unwrap(), "7");
    }
}
