//! Off-line collection and self-test status bytes.

use serde::Serialize;

/// Byte 362: off-line data collection status (ACS-3, "SMART READ DATA").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OfflineStatus {
    /// The byte.
    pub code: u8,
    /// In words.
    pub status: &'static str,
    /// Bit 7: automatic collection is on.
    pub automatic: bool,
}

impl OfflineStatus {
    /// Bits 6:0 are the status.
    pub fn from_byte(code: u8) -> Self {
        let status = match code & 0x7f {
            0x00 => "never_started",
            0x02 => "completed",
            0x03 => "in_progress",
            0x04 => "suspended_by_host",
            0x05 => "aborted_by_host",
            0x06 => "aborted_by_device",
            0x40.. => "vendor_specific",
            _ => "reserved",
        };
        Self {
            code,
            status,
            automatic: code & 0x80 != 0,
        }
    }
}

/// Result of a self-test: the high nibble of its status byte (ACS-3, "Self-test execution status values").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelfTestResult {
    /// 0: completed without error, or none was ever run.
    Passed,
    /// 1: aborted by the host.
    AbortedByHost,
    /// 2: interrupted by a reset.
    InterruptedByReset,
    /// 3: could not be completed, fatal or unknown error.
    FatalError,
    /// 4: failed, the element is unknown.
    UnknownFailure,
    /// 5: failed, electrical element.
    ElectricalFailure,
    /// 6: failed, servo or seek element.
    ServoFailure,
    /// 7: failed, read element.
    ReadFailure,
    /// 8: failed, handling damage suspected.
    HandlingDamage,
    /// 15: in progress.
    InProgress,
    /// Reserved.
    Reserved,
}

impl SelfTestResult {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Passed => "completed without error",
            Self::AbortedByHost => "aborted by the host",
            Self::InterruptedByReset => "interrupted by a reset",
            Self::FatalError => "could not be completed",
            Self::UnknownFailure => "an unknown element failed",
            Self::ElectricalFailure => "an electrical element failed",
            Self::ServoFailure => "a servo or seek element failed",
            Self::ReadFailure => "a read element failed",
            Self::HandlingDamage => "handling damage is suspected",
            Self::InProgress => "in progress",
            Self::Reserved => "reserved result",
        }
    }

    /// From the high nibble of `status`.
    pub fn from_status(status: u8) -> Self {
        match status >> 4 {
            0x0 => Self::Passed,
            0x1 => Self::AbortedByHost,
            0x2 => Self::InterruptedByReset,
            0x3 => Self::FatalError,
            0x4 => Self::UnknownFailure,
            0x5 => Self::ElectricalFailure,
            0x6 => Self::ServoFailure,
            0x7 => Self::ReadFailure,
            0x8 => Self::HandlingDamage,
            0xf => Self::InProgress,
            _ => Self::Reserved,
        }
    }

    /// Whether the drive is well by this test; `None` where it was not finished.
    pub fn passed(self) -> Option<bool> {
        match self {
            Self::Passed => Some(true),
            Self::FatalError
            | Self::UnknownFailure
            | Self::ElectricalFailure
            | Self::ServoFailure
            | Self::ReadFailure
            | Self::HandlingDamage => Some(false),
            Self::AbortedByHost | Self::InterruptedByReset | Self::InProgress | Self::Reserved => None,
        }
    }
}

/// Byte 363: self-test execution status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SelfTestStatus {
    /// The byte.
    pub code: u8,
    /// The result.
    pub status: SelfTestResult,
    /// Whether it passed, if it was finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// How much of a running test is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_percent: Option<u8>,
}

impl SelfTestStatus {
    /// High nibble the result, low nibble tens of percent left.
    pub fn from_byte(code: u8) -> Self {
        let status = SelfTestResult::from_status(code);
        let remaining = Some((code & 0x0f) * 10).filter(|percent| *percent <= 90);
        Self {
            code,
            status,
            passed: status.passed(),
            remaining_percent: remaining.filter(|_| status == SelfTestResult::InProgress),
        }
    }
}
