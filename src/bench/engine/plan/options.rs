//! What can be chosen: the workload, how much of it, what is in the buffers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::bench::series::Op;

/// What is in the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    /// Incompressible, no two blocks alike.
    #[default]
    Random,
    /// Incompressible, the same buffers again.
    RandomOnce,
    /// All zero.
    Zero,
    /// So many percent of each block are zeros.
    Mix(u8),
    /// So many percent of the blocks repeat an earlier one.
    Dedupe(u8),
}

impl Content {
    /// The share of the bytes that compresses to nothing.
    pub fn compressible(self) -> f64 {
        match self {
            Self::Random | Self::RandomOnce | Self::Dedupe(_) => 0.0,
            Self::Zero => 1.0,
            Self::Mix(percent) => f64::from(percent) / 100.0,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random => f.write_str("random"),
            Self::RandomOnce => f.write_str("random-once"),
            Self::Zero => f.write_str("zero"),
            Self::Mix(percent) => write!(f, "mix:{percent}"),
            Self::Dedupe(percent) => write!(f, "dedupe:{percent}"),
        }
    }
}

impl FromStr for Content {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |digits: &str| {
            digits
                .parse::<u8>()
                .ok()
                .filter(|p| *p <= 100)
                .ok_or_else(|| format!("{text:?}: a percentage from 0 to 100 is missing"))
        };
        match text.split_once(':') {
            None if text == "random" => Ok(Self::Random),
            None if text == "random-once" => Ok(Self::RandomOnce),
            None if text == "zero" => Ok(Self::Zero),
            Some(("mix", digits)) => percent(digits).map(Self::Mix),
            Some(("dedupe", digits)) => percent(digits).map(Self::Dedupe),
            _ => Err(format!(
                "no content {text:?}; there are: random, random-once, zero, mix:P, dedupe:P"
            )),
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Workload {
    /// Large requests one behind the other.
    #[default]
    Seq,
    /// The same, over 90 % of the medium.
    SeqConsistency,
    /// Three folders, written and read back three times.
    Das,
    /// Random 4 KiB, 70 % reads, at five depths.
    Mix,
    /// CrystalDiskMark 3.
    Cdm3,
    /// CrystalDiskMark 8, default profile.
    Cdm8,
    /// CrystalDiskMark 8, NVMe profile.
    Cdm8Nvme,
    /// Whether the controller compresses.
    Compressibility,
}

/// Workloads by name.
pub const WORKLOADS: &[(&str, Workload, &str)] = &[
    ("seq", Workload::Seq, "128 KiB, 32 deep, 60 s"),
    (
        "seq-consistency",
        Workload::SeqConsistency,
        "the same over 90 % of the medium",
    ),
    (
        "das",
        Workload::Das,
        "photos, videos and a disc, each written and read back three times",
    ),
    (
        "mix",
        Workload::Mix,
        "random 4 KiB, 70 % reads, 1 to 60 deep, 60 s each",
    ),
    ("cdm3", Workload::Cdm3, "the rows of CrystalDiskMark 3"),
    ("cdm8", Workload::Cdm8, "the rows of CrystalDiskMark 8"),
    (
        "cdm8-nvme",
        Workload::Cdm8Nvme,
        "the same, as its NVMe profile has them",
    ),
    (
        "compressibility",
        Workload::Compressibility,
        "whether zeros are written faster than random bytes",
    ),
];

impl Workload {
    /// Its name.
    pub fn word(self) -> &'static str {
        WORKLOADS
            .iter()
            .find(|(_, workload, _)| *workload == self)
            .map_or("seq", |(name, ..)| name)
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        WORKLOADS
            .iter()
            .find(|(name, ..)| *name == text)
            .map(|(_, workload, _)| *workload)
            .ok_or_else(|| {
                let names: Vec<&str> = WORKLOADS.iter().map(|(name, ..)| *name).collect();
                format!("no workload {text:?}; there are: {}", names.join(", "))
            })
    }
}

/// How much of a sequential workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    /// So many bytes.
    Bytes(u64),
    /// So long.
    For(Duration),
    /// So many percent of the medium.
    FillPercent(f64),
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The workload.
    pub workload: Workload,
    /// How much of it; the workload's own when absent.
    pub amount: Option<Amount>,
    /// What sequential workloads do; write when absent.
    pub op: Option<Op>,
    /// What is in the buffers.
    pub content: Content,
    /// Starts every list of random numbers.
    pub seed: u64,
    /// Distance of temperature readings; chosen by their cost when absent.
    pub temp_interval: Option<Duration>,
    /// The run stops at this temperature, in °C.
    pub max_temp_c: Option<f64>,
    /// Leave out the gaps between sets.
    pub no_gap: bool,
    /// Without a completion for so long, a stage is given up.
    pub deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            workload: Workload::Seq,
            amount: None,
            op: None,
            content: Content::Random,
            seed: 1,
            temp_interval: None,
            max_temp_c: None,
            no_gap: false,
            deadline: Duration::from_secs(60),
        }
    }
}
